package door

import (
	"errors"
	"fmt"
	"net"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// soPeerGroups is SO_PEERGROUPS of asm-generic/socket.h (amd64, arm64, arm),
// which package syscall does not name. Linux 4.13 and later.
const soPeerGroups = 59

// maxGroups is NGROUPS_MAX of linux/limits.h: no process can be in more.
const maxGroups = 65536

// A Peer is who the kernel says is at the other end of a socket, as it was when
// the connection was made. Nothing in it comes from the peer itself.
type Peer struct {
	UID    uint32
	GID    uint32 // primary group
	PID    int32  // 0 when the process is in another pid namespace
	User   string // the account's name, "" when the uid has none
	GIDs   []uint32
	Groups []string // names of GIDs that have one, primary first
}

// PeerOf asks the kernel who connected to c. Call it once, right after accept:
// it reads the credentials of connect(2), which do not change later. The
// supplementary groups come from SO_PEERGROUPS; where the kernel (before 4.13)
// or an emulator (qemu-user for 32-bit ARM answers ERANGE to any size) cannot
// tell, they are read from the account data base.
func PeerOf(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("door: read peer credentials: %w", err)
	}
	var cred *syscall.Ucred
	var gids []uint32
	var credErr, groupsErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		gids, groupsErr = peerGroups(fd)
	}); err != nil {
		return Peer{}, fmt.Errorf("door: read peer credentials: %w", err)
	}
	if credErr != nil {
		return Peer{}, fmt.Errorf("door: read peer credentials (SO_PEERCRED): %w", credErr)
	}
	p := Peer{UID: cred.Uid, GID: cred.Gid, PID: cred.Pid}
	account, accountErr := user.LookupId(strconv.FormatUint(uint64(p.UID), 10))
	if accountErr == nil {
		p.User = account.Username
	}
	if groupsErr != nil && accountErr == nil {
		gids = accountGroups(account)
	}
	p.join(gids)
	return p, nil
}

// PeerNamed is an account, user:NAME or uid:NUMBER, as it would be seen had it
// connected: for a port where the kernel does not tell who is there.
func PeerNamed(account string) (Peer, error) {
	pr, err := parsePrincipal(account)
	if err != nil {
		return Peer{}, err
	}
	var u *user.User
	switch pr.kind {
	case "uid":
		p := Peer{UID: pr.uid}
		if u, err = user.LookupId(strconv.FormatUint(uint64(pr.uid), 10)); err != nil {
			return p, nil // a number needs no name
		}
	case "user":
		if u, err = user.Lookup(pr.name); err != nil {
			return Peer{}, fmt.Errorf("there is no account %q on this computer: %w", pr.name, err)
		}
	default:
		return Peer{}, fmt.Errorf("principal %q is a group, and somebody has to be one account", account)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return Peer{}, fmt.Errorf("the uid of account %q: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return Peer{}, fmt.Errorf("the group of account %q: %w", u.Username, err)
	}
	p := Peer{UID: uint32(uid), GID: uint32(gid), User: u.Username}
	p.join(accountGroups(u))
	return p, nil
}

// join fills in the groups, the primary one first.
func (p *Peer) join(gids []uint32) {
	p.GIDs = append(p.GIDs, p.GID)
	for _, g := range gids {
		if !slices.Contains(p.GIDs, g) {
			p.GIDs = append(p.GIDs, g)
		}
	}
	for _, g := range p.GIDs {
		if group, err := user.LookupGroupId(strconv.FormatUint(uint64(g), 10)); err == nil {
			p.Groups = append(p.Groups, group.Name)
		}
	}
}

// peerGroups reads SO_PEERGROUPS. The kernel answers ERANGE and the size it
// wants when the buffer is too small.
func peerGroups(fd uintptr) ([]uint32, error) {
	for n := 32; n <= maxGroups; n *= 8 {
		buf := make([]uint32, n)
		size := uint32(n * 4)
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.SOL_SOCKET, soPeerGroups,
			uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return buf[:min(int(size/4), n)], nil
		case errno != syscall.ERANGE:
			return nil, errno
		}
	}
	return nil, errors.New("more groups than the kernel allows")
}

// accountGroups reads a user's groups from the account data base.
func accountGroups(u *user.User) []uint32 {
	ids, err := u.GroupIds()
	if err != nil {
		return nil // fewer groups means fewer rights: the safe side
	}
	var gids []uint32
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			gids = append(gids, uint32(n))
		}
	}
	return gids
}

// String is the peer in one line for messages: "uid 1001 (alice; groups dialout, gsd-view)".
func (p Peer) String() string {
	name := p.User
	if name == "" {
		name = "no account name"
	}
	if len(p.Groups) == 0 {
		return fmt.Sprintf("uid %d (%s)", p.UID, name)
	}
	groups, more := p.Groups, ""
	if len(groups) > 8 { // keep the sentence short
		more = fmt.Sprintf(" and %d more", len(groups)-8)
		groups = groups[:8]
	}
	return fmt.Sprintf("uid %d (%s; groups %s%s)", p.UID, name, strings.Join(groups, ", "), more)
}

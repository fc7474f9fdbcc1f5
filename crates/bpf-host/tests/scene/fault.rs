//! A page fault that another task has to serve: `userfaultfd`, as live migration uses it.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::{STAGE, become_task};

/// From include/uapi/linux/userfaultfd.h.
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_ZEROPAGE: libc::c_ulong = 0xc020_aa04;
const MODE_MISSING: u64 = 1;
const PAGE_BYTES: usize = 4096;

/// A victim touches such a page in its first activation; it is served after `pause`.
pub fn served_after(pause: Duration) {
    // SAFETY: a new mapping of our own; the descriptor is new and ours; each request is as long as
    // its number says.
    let (fd, page) = unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            PAGE_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(page, libc::MAP_FAILED);
        let fd = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) as i32;
        assert!(fd >= 0, "userfaultfd: {}", std::io::Error::last_os_error());
        let fd = OwnedFd::from_raw_fd(fd);
        request(&fd, UFFDIO_API, &mut [UFFD_API, 0, 0]);
        let range = [page as u64, PAGE_BYTES as u64];
        request(
            &fd,
            UFFDIO_REGISTER,
            &mut [range[0], range[1], MODE_MISSING, 0],
        );
        (fd, page as usize)
    };
    let victim = std::thread::spawn(move || {
        become_task("scene-victim", STAGE, 10);
        std::thread::sleep(Duration::from_millis(2));
        // SAFETY: the page is mapped until we are done.
        unsafe { (page as *mut u8).write_volatile(1) };
        std::thread::sleep(Duration::from_millis(2));
    });
    // Until it has touched the page.
    let mut message = [0u8; 32];
    // SAFETY: the call writes into our array.
    let read = unsafe { libc::read(fd.as_raw_fd(), message.as_mut_ptr().cast(), message.len()) };
    assert_eq!(read, 32, "a message of a fault");
    std::thread::sleep(pause);
    request(
        &fd,
        UFFDIO_ZEROPAGE,
        &mut [page as u64, PAGE_BYTES as u64, 0, 0],
    );
    victim.join().unwrap();
    // SAFETY: nobody uses the page any more.
    unsafe { libc::munmap(page as *mut _, PAGE_BYTES) };
}

fn request(fd: &OwnedFd, number: libc::c_ulong, argument: &mut [u64]) {
    // SAFETY: the argument is as long as the request's number says.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), number, argument.as_mut_ptr()) };
    assert!(
        done >= 0,
        "ioctl {number:#x}: {}",
        std::io::Error::last_os_error()
    );
}

// SPDX-License-Identifier: Apache-2.0

// Panics that are caught, in depth and in threads, with what they drop; locks, a child.
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::process::{exit, Command};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex};
use std::{thread, time::Duration};

fn spin(n: u64) -> u64 {
    (0..n).fold(1, |x: u64, i| x.wrapping_mul(6364136223846793005).wrapping_add(i) ^ x >> 7)
}

#[inline(never)]
fn fall(depth: u32) -> u32 {
    if depth == 0 {
        panic!("deep")
    }
    fall(depth - 1) + 1
}

struct Guard<'a>(&'a Mutex<u32>);
impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
    }
}

fn main() {
    set_hook(Box::new(|_| {}));
    let dropped = Mutex::new(0);
    let caught = (0..3000u32).filter(|i| {
        catch_unwind(AssertUnwindSafe(|| {
            let _guard = Guard(&dropped);
            fall(i % 50)
        }))
        .is_err()
    });
    println!("{} {}", caught.count(), dropped.lock().unwrap());
    let begin = Arc::new(Barrier::new(8));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..8)
        .map(|i| {
            let (begin, send) = (begin.clone(), send.clone());
            thread::spawn(move || {
                begin.wait();
                send.send(spin(5_000_000) + i).unwrap();
                if i == 3 {
                    panic!("thread")
                }
            })
        })
        .collect();
    let failed = threads.into_iter().filter_map(|t| t.join().err()).count();
    drop(send);
    println!("{} {}", failed, receive.iter().min().unwrap());
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let its = pair.clone();
    let waker = thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        *its.0.lock().unwrap() = true;
        its.1.notify_all();
    });
    let mut is_set = pair.0.lock().unwrap();
    while !*is_set {
        is_set = pair.1.wait(is_set).unwrap();
    }
    drop(is_set);
    waker.join().unwrap();
    let child = Command::new("sh").args(["-c", "echo child; exit 3"]).output().unwrap();
    println!("{:?} {:?}", String::from_utf8_lossy(&child.stdout), child.status.code());
    exit(6);
}

//! Faults in the environment of a tuning run: disks, folders, clocks, other processes.

use super::{
    Place, alive, bytes, fails_in_order, left, preload, signal, succeeds, wait_until, workers,
};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Files may grow to a limit; then writing fails as on a full disk.
#[test]
fn a_full_disk_loses_nothing_that_was_stored() {
    let place = Place::new();
    let before = succeeds(place.tuning(1000, 3));
    let first = place.stored();
    let kilobytes = fs::metadata(place.store()).expect("a store").len() / 1024;
    for (k, room) in [0, 1, 4, 16, 64, 200].into_iter().enumerate() {
        let limit = kilobytes.max(64) + room;
        let mut shell = Command::new("bash");
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_patsat")]);
        let out = place.under(shell, 2000 + k, 3).output().expect("it starts");
        fails_in_order(&out);
        place.has(&left(&before.stdout));
        assert!(place.stored().is_superset(&first));
    }
    // With free space again, everything continues.
    let after = succeeds(place.tuning(2000, 3));
    place.has(&left(&after.stdout));
}

/// The address space is too small for the driver or for patsat itself. Drivers then abort, which costs a worker.
#[test]
fn too_little_memory_ends_in_order() {
    let limited = |megabytes: usize| {
        let mut shell = Command::new("bash");
        let script = format!("ulimit -v {}; exec \"$0\" \"$@\"", megabytes << 10);
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_patsat")]);
        shell
    };
    for megabytes in [60, 200, 400] {
        let place = Place::new();
        let out = place.under(limited(megabytes), 1000, 2).output().expect("it starts");
        fails_in_order(&out);
        let dot = ["eval", "programs/dot.pat", "--size=n=5", "--gen=xs=iota", "--gen=ys=iota"];
        for args in [&["check", "programs/asum.pat"][..], &dot, &["devices"]] {
            let out = limited(megabytes).args(args).output().expect("it starts");
            fails_in_order(&out);
            assert!(out.status.success() || megabytes == 60 || args == ["devices"], "{args:?}");
        }
    }
    // Memory runs out somewhere between loading the program and ranking its candidates.
    for megabytes in (100..=160).step_by(6) {
        let args = ["optimize", "programs/asum.pat", "--size=n=1Mi", "--device=none"];
        let out = limited(megabytes).args(args).output().expect("it starts");
        fails_in_order(&out);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() || said.contains("E0709"), "{megabytes}: {said}");
    }
}

/// A read-only folder with a store in it.
#[test]
fn a_folder_that_cannot_be_written_stays_as_it_is() {
    let place = Place::new();
    succeeds(place.tuning(1000, 2));
    let connection = rusqlite::Connection::open(place.store()).expect("a store");
    connection.pragma_update(None, "wal_checkpoint", "TRUNCATE").expect("no log is left");
    drop(connection);
    let before = bytes(&place.store());
    let mode = |bits| fs::Permissions::from_mode(bits);
    fs::set_permissions(place.store(), mode(0o444)).expect("permissions");
    fs::set_permissions(place.folder.path(), mode(0o555)).expect("permissions");
    for n in [1000, 1001] {
        let mut command = place.tuning(n, 2);
        let scratch = tempfile::TempDir::new().expect("a folder");
        fs::set_permissions(scratch.path(), mode(0o777)).expect("permissions");
        command.env("POCL_CACHE_DIR", scratch.path()).env("HOME", scratch.path());
        // Root may write anywhere.
        if fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0) {
            command.uid(65534).gid(65534);
        }
        fails_in_order(&command.output().expect("it starts"));
        assert_eq!(bytes(&place.store()), before);
    }
    fs::set_permissions(place.folder.path(), mode(0o755)).expect("permissions");
    fs::set_permissions(place.store(), mode(0o644)).expect("permissions");
    succeeds(place.tuning(1001, 2));
}

/// The clock jumps ten years back and forth at every query, for patsat and for the driver.
#[test]
fn clocks_that_jump_lose_nothing() {
    let place = Place::new();
    let shim = preload(
        &place,
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <sys/time.h>\n#include <time.h>\n\
         static unsigned looks;\n\
         static long jump(void) { return (__sync_add_and_fetch(&looks, 1) % 3 - 1) * 315360000L; }\n\
         int clock_gettime(clockid_t id, struct timespec *t) {\n\
           static int (*real)(clockid_t, struct timespec *);\n\
           if (!real) real = dlsym(RTLD_NEXT, \"clock_gettime\");\n\
           int e = real(id, t);\n\
           if (id == CLOCK_REALTIME) t->tv_sec += jump();\n\
           return e;\n\
         }\n\
         int gettimeofday(struct timeval *t, void *z) {\n\
           struct timespec s;\n\
           int e = clock_gettime(CLOCK_REALTIME, &s);\n\
           t->tv_sec = s.tv_sec; t->tv_usec = s.tv_nsec / 1000;\n\
           return e;\n\
         }\n",
    );
    for n in 1000..1003 {
        let mut command = place.tuning(n, 3);
        command.env("LD_PRELOAD", &shim);
        place.has(&left(&succeeds(command).stdout));
    }
    succeeds(place.tuning(1003, 3));
}

/// Two tuning runs of the same program and two of others share a store.
#[test]
fn writers_do_not_disturb_each_other() {
    let place = Place::new();
    let started: Vec<_> = [1000, 1000, 1001, 1002]
        .into_iter()
        .map(|n| place.tuning(n, 3).spawn().expect("it starts"))
        .collect();
    for child in started {
        let out = child.wait_with_output().expect("it ends");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        place.has(&left(&out.stdout));
    }
}

/// Every worker is stopped in the middle. Its current candidate is given up, and the others continue.
#[test]
fn stopped_workers_cost_a_candidate() {
    let place = Place::new();
    let mut command = place.tuning(1000, 8);
    command.args(["--run-timeout", "2", "--build-timeout", "4"]);
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains("\"type\":\"candidate\"") {
        assert_ne!(lines.read_line(&mut text).expect("a line"), 0, "it ended early");
    }
    let stopped = workers(child.id());
    stopped.iter().for_each(|w| signal(*w, "STOP"));
    lines.read_to_string(&mut text).expect("its output");
    let out = child.wait_with_output().expect("it ends");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    place.has(&left(text.as_bytes()));
    wait_until("the stopped workers end", || !stopped.iter().any(|w| alive(*w)));
}

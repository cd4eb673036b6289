# SPDX-License-Identifier: Apache-2.0
"""A FUSE file system whose files cannot be read completely: the kernel itself returns EIO.

Implements the part of the protocol (linux/fuse.h) that reading needs, directly on /dev/fuse.
"""

import ctypes
import errno
import os
import stat
import struct
import threading

IN_HEADER = struct.Struct("<IIQQIIII")  # size, operation, unique, node, ...
OUT_HEADER = struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<6Q10I")
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = 25, 26, 27, 29, 36, 38, 42
DIRECT_IO = 1  # each read of the program reaches this file system unchanged
ROOT = 1
DETACH = 2


class NoFuse(Exception):
    """No FUSE file system can be mounted here."""


class FailingFileSystem:
    """A file system that is mounted for the duration of a `with` block. `files` maps names to
    contents. `bad` maps a name to the offset of the first byte that cannot be read. Without
    `direct_io`, the kernel caches pages, and files can be mapped."""

    def __init__(self, folder, files, direct_io=True):
        self.folder = os.fspath(folder)
        self.files = dict(files)
        self.names = list(self.files)
        self.bad = {}
        self.direct_io = direct_io
        self.failed_reads = 0
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self):
        try:
            self._fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as e:
            raise NoFuse(str(e)) from e
        options = f"fd={self._fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        if self._libc.mount(b"toy", self.folder.encode(), b"fuse", 0, options.encode()) != 0:
            os.close(self._fd)
            raise NoFuse("mount: " + os.strerror(ctypes.get_errno()))
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._libc.umount2(self.folder.encode(), DETACH)

    def _serve(self):
        while True:
            try:
                request = os.read(self._fd, 1 << 20)
            except OSError as e:
                if e.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return  # ENODEV: unmounted
            _, operation, unique, node, *_ = IN_HEADER.unpack_from(request)
            if operation in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            try:
                code, answer = 0, self._answer(operation, node, request[IN_HEADER.size :])
            except OSError as e:
                code, answer = -e.errno, b""
            os.write(self._fd, OUT_HEADER.pack(OUT_HEADER.size + len(answer), code, unique) + answer)

    def _answer(self, operation, node, body):
        if operation == INIT:
            return struct.pack("<4I2H2I2H8I", 7, 31, 1 << 17, 0, 9, 9, 1 << 17, 1, 0, 0, *[0] * 8)
        if operation == LOOKUP:
            name = body.rstrip(b"\0").decode()
            if name not in self.names:
                raise OSError(errno.ENOENT, name)
            child = ROOT + 1 + self.names.index(name)
            return struct.pack("<4Q2I", child, 0, 0, 0, 0, 0) + self._attributes(child)
        if operation == GETATTR:
            return struct.pack("<Q2I", 0, 0, 0) + self._attributes(node)
        if operation in (OPEN, OPENDIR):
            direct = operation == OPEN and self.direct_io
            return struct.pack("<Q2I", 0, DIRECT_IO if direct else 0, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("<2QI", body)
            return self._read(self.names[node - ROOT - 1], offset, size)
        if operation == STATFS:
            return bytes(80)
        if operation in (RELEASE, RELEASEDIR, FLUSH, DESTROY):
            return b""
        raise OSError(errno.ENOSYS, "")

    def _attributes(self, node):
        is_root = node == ROOT
        size = 0 if is_root else len(self.files[self.names[node - ROOT - 1]])
        mode = stat.S_IFDIR | 0o755 if is_root else stat.S_IFREG | 0o644
        return ATTRIBUTES.pack(node, size, (size + 511) // 512, *[10**9] * 3, 0, 0, 0, mode, 1,
                               os.getuid(), os.getgid(), 0, 4096, 0)

    # With direct I/O, a read returns the bytes before the bad place, as a disk does. Through the
    # page cache, a short answer would look like the end of the file, so the whole read must fail.
    # The kernel then requests each page again.
    def _read(self, name, offset, size):
        end = self.bad.get(name, len(self.files[name]))
        last = offset if self.direct_io else offset + size - 1
        if name in self.bad and last >= end:
            self.failed_reads += 1
            raise OSError(errno.EIO, name)
        return self.files[name][offset : min(offset + size, end)]

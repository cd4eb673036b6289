// SPDX-License-Identifier: Apache-2.0
#include "input/file_bytes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <millrace/error.hpp>
#include <millrace/io/detail/residency.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

io::unique_fd open_fd(const input_file& file) {
  // O_NONBLOCK makes open(2) return at once even if a FIFO has no writer yet. wait() waits for the
  // writer.
  if (!file.is_stdin()) return io::open_read_only(file.path, O_NONBLOCK);
  io::unique_fd fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!fd) throw io_error(display_path(file), "dup", errno);
  return fd;
}

}  // namespace

file_bytes::file_bytes(const input_file& file, std::uint64_t offset)
    : path_(display_path(file)), fd_(open_fd(file)), position_(offset) {
  struct ::stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw io_error(path_, "fstat", errno);
  // A file redirected to stdin does not count as a regular file: reading it must start at stdin's
  // current offset, because another program may have consumed the bytes before that offset.
  regular_ = S_ISREG(status.st_mode) && !file.is_stdin();
  if (regular_) {
    // This call is only a hint to the kernel, so a failure does not matter.
    (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    pages_ = io::pages_for_reading(fd_, static_cast<std::uint64_t>(status.st_size));
    return;
  }
  cancelled_ = io::unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cancelled_) throw io_error(path_, "eventfd", errno);
}

void file_bytes::cancel() noexcept {
  if (cancelled_) (void)::eventfd_write(cancelled_.get(), 1);
}

// Waits until read(2) can return data, the end of the file or an error without blocking. Returns
// false if cancelled.
bool file_bytes::wait() {
  std::array<::pollfd, 2> fds = {{{fd_.get(), POLLIN, 0}, {cancelled_.get(), POLLIN, 0}}};
  if (io::uninterrupted([&] { return ::poll(fds.data(), fds.size(), -1); }) < 0) {
    throw io_error(path_, "poll", errno);
  }
  return fds[1].revents == 0;
}

std::size_t file_bytes::read_file(std::span<std::byte> out) {
  for (;;) {
    if (!regular_ && !wait()) return 0;
    std::size_t done = 0;
    if (regular_) {
      done = io::pread_once(fd_, out, position_, path_, pages_);
    } else {
      const ssize_t n =
          io::uninterrupted([&] { return ::read(fd_.get(), out.data(), out.size()); });
      // If another process took the bytes that poll(2) reported, wait for more.
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) continue;
      if (n < 0) throw io_error(path_, "read", errno);
      done = static_cast<std::size_t>(n);
    }
    position_ += done;
    return done;
  }
}

std::size_t file_bytes::read(std::span<std::byte> out) {
  if (head_.empty()) return read_file(out);
  const std::size_t n = std::min(out.size(), head_.size());
  std::copy_n(head_.begin(), n, out.begin());
  head_.erase(head_.begin(), head_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

std::span<const std::byte> file_bytes::peek(std::size_t size) {
  while (head_.size() < size) {
    const std::size_t used = head_.size();
    head_.resize(size);
    const std::size_t n = read_file(std::span(head_).subspan(used));
    head_.resize(used + n);
    if (n == 0) break;
  }
  return head_;
}

}  // namespace millrace::preprocess

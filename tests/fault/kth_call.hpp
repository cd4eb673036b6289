// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "fault/kth_board.hpp"

/// Decides which calls count, which of these calls fail, and how they fail.
namespace millrace::test {

enum class kind : std::uint8_t {
  open,
  read,
  write,
  sync,
  rename,
  unlink,
  truncate,
  allocate,
  stat,
  space,
  map,
  mkdir,
  link,
  lock,
  advise,
  list,
  close,
  copy,
};
inline constexpr std::array<std::string_view, 18> kind_names = {
    "open",  "read", "write", "sync", "rename", "unlink", "truncate", "allocate", "stat",
    "space", "map",  "mkdir", "link", "lock",   "advise", "list",     "close",    "copy"};

enum class action : std::uint8_t {
  none,
  error,
  transfer_half,
  kill_before,
  kill_after,
  report_no_size,
};

struct named_error {
  std::string_view name;
  int code;
};
inline constexpr std::array<named_error, 12> errors = {{{"EIO", EIO},
                                                        {"ENOSPC", ENOSPC},
                                                        {"EDQUOT", EDQUOT},
                                                        {"EINTR", EINTR},
                                                        {"EAGAIN", EAGAIN},
                                                        {"EMFILE", EMFILE},
                                                        {"ENFILE", ENFILE},
                                                        {"ENOMEM", ENOMEM},
                                                        {"EACCES", EACCES},
                                                        {"ENOLCK", ENOLCK},
                                                        {"EROFS", EROFS},
                                                        {"ESTALE", ESTALE}}};

[[noreturn]] inline void refuse(const char* what) {
  (void)std::fprintf(stderr, "fail_kth: %s\n", what);
  ::_exit(99);
}

template <class Function>
Function* libc(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) refuse(name);
  return reinterpret_cast<Function*>(found);
}

struct settings {
  std::string_view folder;
  std::string_view ending;  // only paths with this ending count
  board* to = nullptr;
  std::size_t of = kind_names.size();  // index of the kind that fails; by default, none
  std::uint64_t k = 0;
  action what = action::none;
  int code = 0;
  bool goes_on = false;

  settings() {
    const char* const path = std::getenv("MILLRACE_FAIL_FOLDER");
    if (path == nullptr || path[0] != '/') refuse("MILLRACE_FAIL_FOLDER: expected a full path");
    const char* const rank = std::getenv("MILLRACE_FAIL_RANK");
    const char* mine = std::getenv("OMPI_COMM_WORLD_RANK");
    if (mine == nullptr) mine = std::getenv("PMI_RANK");
    if (rank != nullptr && (mine == nullptr || std::strcmp(rank, mine) != 0)) return;
    folder = path;
    if (const char* const name = std::getenv("MILLRACE_FAIL_NAME")) ending = name;
    if (const char* const name = std::getenv("MILLRACE_FAIL_BOARD")) open_board(name);
    if (const char* const plan = std::getenv("MILLRACE_FAIL_KTH")) take(plan);
  }

 private:
  void open_board(const char* name) {
    const int fd = libc<int(const char*, int, ...)>("open")(name, O_RDWR | O_CLOEXEC);
    if (fd < 0) refuse("MILLRACE_FAIL_BOARD: cannot be opened");
    void* const at = libc<void*(void*, std::size_t, int, int, int, ::off_t)>("mmap")(
        nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) refuse("MILLRACE_FAIL_BOARD: cannot be mapped");
    to = static_cast<board*>(at);
    libc<int(int)>("close")(fd);
  }

  static std::string_view cut_word(std::string_view& text) {
    const auto end = text.find(':');
    const std::string_view word = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    return word;
  }

  void take(std::string_view plan) {
    const auto name = cut_word(plan);
    for (of = 0; of < kind_names.size() && kind_names[of] != name;) ++of;
    if (of == kind_names.size()) refuse("MILLRACE_FAIL_KTH: unknown kind of call");
    for (const char digit : cut_word(plan)) k = 10 * k + static_cast<std::uint64_t>(digit - '0');
    const auto fault = cut_word(plan);
    if (fault == "short") what = action::transfer_half;
    if (fault == "kill-before") what = action::kill_before;
    if (fault == "kill-after") what = action::kill_after;
    if (fault == "no-size") what = action::report_no_size;
    for (const named_error& error : errors) {
      if (error.name != fault) continue;
      what = action::error;
      code = error.code;
    }
    if (what == action::none) refuse("MILLRACE_FAIL_KTH: unknown fault");
    const auto when = cut_word(plan);
    if (when != "once" && when != "on") refuse("MILLRACE_FAIL_KTH: expected once or on");
    goes_on = when == "on";
  }
};

inline const settings& given() {
  static const settings all;
  return all;
}

// `tracked[fd]` is true if calls on the descriptor `fd` count.
inline std::array<std::atomic<bool>, 1 << 16> tracked;

inline bool is_tracked(int fd) {
  return fd >= 0 && static_cast<std::size_t>(fd) < tracked.size() &&
         tracked[static_cast<std::size_t>(fd)].load(std::memory_order_relaxed);
}
inline void track(int fd, bool is) {
  if (fd < 0 || static_cast<std::size_t>(fd) >= tracked.size()) return;
  tracked[static_cast<std::size_t>(fd)].store(is, std::memory_order_relaxed);
}

inline bool is_under_folder(std::string_view path) {
  const std::string_view folder = given().folder;
  return !folder.empty() && path.starts_with(folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

inline bool is_ours(int folder, const char* path) {
  if (path == nullptr) return false;
  if (path[0] == '/') return is_under_folder(path);
  if (folder != AT_FDCWD) return is_tracked(folder);
  std::array<char, PATH_MAX> here;
  return ::getcwd(here.data(), here.size()) != nullptr && is_under_folder(here.data());
}

/// The function and the file of a call, for the report.
struct subject {
  const char* function;
  int fd = -1;
  const char* path = nullptr;
};

inline std::array<char, PATH_MAX> name_of(const subject& of) {
  std::array<char, PATH_MAX> name{};
  if (of.path != nullptr && of.path[0] != '\0') {
    (void)std::snprintf(name.data(), name.size(), "%s", of.path);
    return name;
  }
  std::array<char, 64> link;
  (void)std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", of.fd);
  if (::readlink(link.data(), name.data(), name.size() - 1) < 0) name[0] = '?';
  return name;
}

inline void report(const subject& of) {
  board* const to = given().to;
  if (to == nullptr || to->fired.fetch_add(1) != 0) return;
  (void)std::snprintf(to->first.data(), to->first.size(), "%s %.700s", of.function,
                      name_of(of).data());
}

// Counts a call, and returns the fault to apply to it.
inline action next(kind which, const subject& of) {
  const settings& all = given();
  if (!all.ending.empty() && !std::string_view(name_of(of).data()).ends_with(all.ending)) {
    return action::none;
  }
  const auto index = static_cast<std::size_t>(which);
  static std::array<std::atomic<std::uint64_t>, kind_names.size()> counts;  // calls in this process
  const std::uint64_t k = ++counts[index];
  if (all.to != nullptr) ++all.to->calls[index];
  if (index != all.of || k < all.k || (k > all.k && !all.goes_on)) return action::none;
  report(of);
  return all.what;
}

[[noreturn]] inline void die() {
  (void)::kill(::getpid(), SIGKILL);
  for (;;) (void)::pause();
}

/// Runs a call. If the call must fail, sets errno and returns `failed` instead.
/// @param no_size  called if the call must report a file system without a size
template <class Result, class Call, class NoSize = void (*)()>
Result attempt(
    bool ours, kind which, const subject& of, Result failed, Call&& call,
    NoSize&& no_size = [] {}) {
  if (!ours) return call();
  switch (next(which, of)) {
    case action::error:
      errno = given().code;
      return failed;
    case action::kill_before:
      die();
    case action::kill_after:
      (void)call();
      die();
    case action::report_no_size:
      no_size();
      return call();
    default:
      return call();
  }
}

/// Runs a call that stores the size of a file system in `to`. A planned fault can set this size to
/// 0.
template <class Report, class Call>
int report_size(bool ours, const subject& of, Report* to, Call&& call) {
  bool empty = false;
  const int result = attempt(ours, kind::space, of, -1, call, [&] { empty = true; });
  if (empty && result == 0) to->f_blocks = to->f_bfree = to->f_bavail = 0;
  return result;
}

/// Runs a call that transfers up to `size` bytes. A planned fault can halve `size`.
template <class Call>
::ssize_t transfer(bool ours, kind which, const subject& of, std::size_t size, Call&& call) {
  if (!ours) return call(size);
  switch (next(which, of)) {
    case action::error:
      errno = given().code;
      return -1;
    case action::transfer_half:
      return call(size > 1 ? size / 2 : size);
    case action::kill_before:
      die();
    case action::kill_after:
      (void)call(size);
      die();
    default:
      return call(size);
  }
}

/// The first `size` bytes of the given buffers.
class cut_vectors {
 public:
  cut_vectors(const ::iovec* parts, int count, std::size_t size) {
    for (int i = 0; i < count && size > 0 && count_ < static_cast<int>(parts_.size()); ++i) {
      ::iovec part = parts[i];
      part.iov_len = std::min(part.iov_len, size);
      size -= part.iov_len;
      parts_[static_cast<std::size_t>(count_++)] = part;
    }
  }
  const ::iovec* data() const { return parts_.data(); }
  int count() const { return count_; }

 private:
  std::array<::iovec, 64> parts_;
  int count_ = 0;
};

inline std::size_t size_of(const ::iovec* parts, int count) {
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  return size;
}

template <class Call>
::ssize_t transfer_parts(bool ours, kind which, const subject& of, const ::iovec* parts, int count,
                         Call&& call) {
  const std::size_t whole = size_of(parts, count);
  return transfer(ours, which, of, whole, [&](std::size_t size) {
    if (size == whole) return call(parts, count);
    const cut_vectors cut(parts, count, size);
    return call(cut.data(), cut.count());
  });
}

}  // namespace millrace::test

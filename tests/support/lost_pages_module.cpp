// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/detail/io/sigbus_guard.hpp>

// Loses pages in a process of Python, which loads this library
// (tests/fault/python_faulthandler.py).

namespace {

constexpr std::size_t page = 4096;

/// More thread-local bytes than the static CUDA runtime has. They do not fit into what libc has
/// for shared objects whose variables must be at a fixed place of each thread.
thread_local std::array<char, 8192> of_thread{};

/// A file of two pages, mapped, of which the second one is lost.
millrace::io::file_mapping half_lost(const char* path) {
  std::ofstream(path) << std::string(2 * page, 'a');
  millrace::io::file_mapping map(path);
  std::filesystem::resize_file(path, page);
  return map;
}

}  // namespace

/// The number of pages copied from such a file: 1 if the loss of the second one was noticed.
extern "C" MILLRACE_EXPORT int pages_copied(const char* path) {
  const millrace::io::file_mapping map = half_lost(path);
  const std::byte* const begin = map.bytes().data();
  std::array<std::byte, 2 * page> to{};
  const std::array<millrace::loader::copy_piece, 2> pieces{
      {{begin, to.data(), page}, {begin + page, to.data() + page, page}}};
  const std::size_t copied = copy_pieces(pieces, begin, begin + map.bytes().size());
  return static_cast<int>(copied);
}

/// 1 if the loss of a page of a watched mapping was noticed.
extern "C" MILLRACE_EXPORT int losses_noticed(const char* path) {
  const millrace::io::file_mapping map = half_lost(path);
  const millrace::dataset::lost_page_watch watch(map.bytes());
  const volatile std::byte* const lost = map.bytes().data() + page;
  return *lost == std::byte{0} && watch.has_lost() ? 1 : 0;
}

/// The thread-local bytes of this thread.
extern "C" MILLRACE_EXPORT const char* thread_local_bytes() {
  return of_thread.data();
}

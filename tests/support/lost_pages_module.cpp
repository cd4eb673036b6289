// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/detail/io/sigbus_guard.hpp>

// A library that a Python process loads. Its functions lose pages of mapped files in this process.
// See tests/fault/python_faulthandler.py.

namespace {

constexpr std::size_t page = 4096;

/// libc reserves little space for shared objects whose thread-local variables need a fixed offset.
/// These thread-local bytes do not fit into that space. They are more than the static CUDA runtime
/// has.
thread_local std::array<char, 8192> of_thread{};

/// Maps a file of two pages and then truncates the file, so that the second page is lost.
millrace::io::file_mapping half_lost(const char* path) {
  std::ofstream(path) << std::string(2 * page, 'a');
  millrace::io::file_mapping map(path);
  std::filesystem::resize_file(path, page);
  return map;
}

}  // namespace

/// Copies both pages of a half-lost file. Returns the number of pages that were copied: 1 if the
/// copy noticed the lost page.
extern "C" MILLRACE_EXPORT int pages_copied(const char* path) {
  const millrace::io::file_mapping map = half_lost(path);
  const std::byte* const begin = map.bytes().data();
  std::array<std::byte, 2 * page> to{};
  const std::array<millrace::loader::copy_piece, 2> pieces{
      {{begin, to.data(), page}, {begin + page, to.data() + page, page}}};
  const std::size_t copied = copy_pieces(pieces, begin, begin + map.bytes().size());
  return static_cast<int>(copied);
}

/// Reads the lost page of a watched mapping. Returns 1 if the watch noticed the loss, otherwise 0.
extern "C" MILLRACE_EXPORT int losses_noticed(const char* path) {
  const millrace::io::file_mapping map = half_lost(path);
  const millrace::dataset::lost_page_watch watch(map.bytes());
  const volatile std::byte* const lost = map.bytes().data() + page;
  return *lost == std::byte{0} && watch.has_lost() ? 1 : 0;
}

/// Returns the address of the calling thread's thread-local bytes.
extern "C" MILLRACE_EXPORT const char* thread_local_bytes() {
  return of_thread.data();
}

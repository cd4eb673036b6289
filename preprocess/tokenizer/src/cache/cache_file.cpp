// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_ops.hpp>

#include "bpe/huge_array.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::array<char, 8> magic = {'M', 'R', 'T', 'O', 'K', 'T', 'A', 'B'};
constexpr std::uint32_t format_version = 1;
constexpr std::size_t crc_offset = 12;
// Larger than the tables of the largest vocabulary that is accepted, 2^22 tokens.
constexpr std::uint64_t max_bytes = std::uint64_t{4} << 30;

struct header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t crc;
  std::uint64_t size_bytes;
  cache_key key;
  std::uint64_t zeros;
};
static_assert(sizeof(header) == 64 && offsetof(header, crc) == crc_offset);

header header_of(const cache_key& key, std::uint64_t size_bytes) {
  return {magic, format_version, 0, size_bytes, key, 0};
}

std::span<const std::byte> bytes_of(const header& first) {
  return std::as_bytes(std::span(&first, 1));
}

bool others_may_write(const struct ::stat& status) {
  return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

}  // namespace

cache_contents read_cache_file(const std::filesystem::path& path, const cache_key& key) {
  // O_NOFOLLOW: a link could lead to a file that another user can exchange. O_NONBLOCK: does not
  // wait for a FIFO's writer.
  const io::unique_fd fd(io::uninterrupted(
      [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }));
  struct ::stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode) || others_may_write(status)) return {};
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return {};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < sizeof(header) || size > max_bytes) return {};

  // A mapping of the file would be faster to make, but a touch of it raises SIGBUS if the file is
  // truncated, or replaced by another machine on NFS. The copy is also in huge pages.
  auto memory = std::make_shared<huge_array<std::byte>>(size);
  const std::span<std::byte> bytes(memory->data(), size);
  try {
    if (io::pread_some(fd, bytes, 0, path) != size) return {};
  } catch (const io_error&) {
    return {};
  }
  header first;
  std::memcpy(&first, bytes.data(), sizeof first);
  const std::uint32_t crc = std::exchange(first.crc, 0);
  const header expected = header_of(key, size);
  if (std::memcmp(&first, &expected, sizeof first) != 0) return {};
  const auto contents = bytes.subspan(sizeof(header));
  if (formats::crc32c(contents, formats::crc32c(bytes_of(first))) != crc) return {};
  return {std::move(memory), contents};
}

void write_cache_file(const std::filesystem::path& path, const cache_key& key,
                      std::span<const std::byte> contents) {
  header first = header_of(key, sizeof(header) + contents.size());
  first.crc = formats::crc32c(contents, formats::crc32c(bytes_of(first)));
  try {
    io::atomic_file file(path);
    // Whatever the umask is, other users may not write.
    if (::fchmod(file.fd().get(), S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH) != 0) {
      throw io_error(file.partial_path(), "fchmod", errno);
    }
    file.append(bytes_of(first));
    file.append(contents);
    file.commit();
  } catch (const io::file_busy&) {
    // Another process writes the same bytes.
  }
}

std::string fault_of_cache_folder(const std::filesystem::path& folder) {
  if (!io::is_there(folder) && ::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    throw io_error(folder, "mkdir", errno);
  }
  const auto status = io::status_if_there(folder);
  if (!status || !S_ISDIR(status->st_mode)) throw io_error(folder, "open", ENOTDIR);
  if ((status->st_mode & S_IWOTH) != 0 && (status->st_mode & S_ISVTX) == 0) {
    return "every user of this machine may replace files in it (pass a folder of your own, or run "
           "chmod o-w)";
  }
  return {};
}

}  // namespace millrace::tokenizer::detail

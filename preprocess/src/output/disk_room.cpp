// SPDX-License-Identifier: Apache-2.0
#include "output/disk_room.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

// Space is reserved in chunks of this size, and a stop signal is checked before each chunk. Some
// file systems fill reserved space with zeros, which takes long.
constexpr std::uint64_t reserved_chunk_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t page_bytes = 4096;  // most file systems round file sizes up to this
constexpr std::uint64_t stat_block_bytes = 512;

std::uint64_t bytes_to_come(const room_claim& claim) {
  const std::uint64_t whole = (claim.bytes + page_bytes - 1) / page_bytes * page_bytes;
  if (claim.file == nullptr) return whole;
  struct ::stat now {};
  if (::fstat(claim.file->fd().get(), &now) != 0) {
    throw io_error(claim.file->partial_path(), "fstat", errno);
  }
  const std::uint64_t taken = static_cast<std::uint64_t>(now.st_blocks) * stat_block_bytes;
  return whole > taken ? whole - taken : 0;
}

// A file system in memory fills reserved space with zeros at once, although all of it is written
// later.
bool is_in_memory(const io::unique_fd& fd) {
  struct ::statfs system {};
  return io::uninterrupted([&] { return ::fstatfs(fd.get(), &system); }) == 0 &&
         (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}

void reserve(io::atomic_file& file, std::uint64_t bytes, const stop_flag& stop) {
  if (bytes <= file.size_bytes()) return;
  const std::uint64_t more = bytes - file.size_bytes();
  for (std::uint64_t done = 0; done < more; done += reserved_chunk_bytes) {
    stop.check();
    file.reserve(std::min(reserved_chunk_bytes, more - done), done);
  }
}

}  // namespace

std::string no_room(const std::filesystem::path& where, std::string_view what, std::uint64_t needed,
                    std::uint64_t free, std::string_view advice) {
  return fmt::format(
      "{}: not enough disk space for {}: {} bytes are needed, {} are free, {} are missing; {}",
      where.string(), what, needed, free, needed - std::min(needed, free), advice);
}

void reserve_all(std::span<const room_claim> claims, const std::filesystem::path& where,
                 std::string_view what, std::string_view advice, const stop_flag& stop) {
  std::uint64_t needed = 0;
  const io::atomic_file* any = nullptr;
  for (const room_claim& claim : claims) {
    needed += bytes_to_come(claim);
    if (claim.file != nullptr) any = claim.file;
  }
  if (any == nullptr) return;
  const auto free = free_bytes_of(io::parent_folder(any->path()));
  if (free && *free < needed) throw error(no_room(where, what, needed, *free, advice));
  if (free && is_in_memory(any->fd())) return;
  for (const room_claim& claim : claims) {
    if (claim.file == nullptr) continue;
    try {
      reserve(*claim.file, claim.bytes, stop);
    } catch (const io_error& e) {
      if (e.code() != ENOSPC && e.code() != EDQUOT) throw;
      const std::string reported =
          free ? fmt::format("the {} that the file system reports as free", *free) : "that";
      throw error(
          fmt::format("{}: not enough disk space for {}: {} bytes are needed, but a quota or "
                      "another process leaves fewer than {}; {}",
                      where.string(), what, needed, reported, advice));
    }
  }
}

}  // namespace millrace::preprocess

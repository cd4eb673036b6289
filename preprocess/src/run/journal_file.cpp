// SPDX-License-Identifier: Apache-2.0
#include "run/journal_file.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/io/file_ops.hpp>

#include "process/fault_point.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t head_bytes = 8;
constexpr std::byte first_kind{'i'};  // kind of the first record of a journal
constexpr std::uint32_t most_bytes = std::uint32_t{1} << 30;

struct record_head {
  std::uint32_t size = 0;
  std::uint32_t crc = 0;
};
static_assert(sizeof(record_head) == head_bytes);

}  // namespace

journal_file::journal_file(std::filesystem::path path) : path_(std::move(path)) {
  folder_ = io::open_folder(io::parent_folder(path_));
  // Another process may remove the file after this process has opened it and before it has locked
  // it. In that case, open the file again.
  do {
    fd_ = io::unique_fd(io::uninterrupted(
        [&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666); }));
    if (!fd_) throw io_error(path_, "open", errno);
    if (io::uninterrupted([&] { return ::flock(fd_.get(), LOCK_EX | LOCK_NB); }) == 0) continue;
    if (errno != EWOULDBLOCK) throw io_error(path_, "flock", errno);
    throw config_error(
        fmt::format("{}: another process is writing with this --output-prefix; wait for it, or "
                    "pass another prefix",
                    path_.string()));
  } while (!io::is_named(fd_, path_));
}

std::vector<std::vector<std::byte>> whole_records(const io::unique_fd& fd,
                                                  const std::filesystem::path& path,
                                                  std::uint64_t& size) {
  std::vector<std::vector<std::byte>> records;
  for (size = 0;;) {
    record_head head;
    const auto head_part = std::as_writable_bytes(std::span(&head, 1));
    if (io::pread_some(fd, head_part, size, path) != head_bytes) break;
    if (head.size == 0 || head.size > most_bytes) break;
    std::vector<std::byte> payload(head.size);
    if (io::pread_some(fd, payload, size + head_bytes, path) != payload.size()) break;
    if (formats::crc32c(payload) != head.crc) break;
    size += head_bytes + payload.size();
    records.push_back(std::move(payload));
  }
  return records;
}

std::vector<std::vector<std::byte>> journal_file::read() {
  auto records = whole_records(fd_, path_, size_);
  if (records.empty()) expect_torn();
  return records;
}

void journal_file::append(std::span<const std::byte> payload) {
  const record_head head{static_cast<std::uint32_t>(payload.size()), formats::crc32c(payload)};
  const auto head_part = std::as_bytes(std::span(&head, 1));
  std::vector<std::byte> record(head_part.begin(), head_part.end());
  record.insert(record.end(), payload.begin(), payload.end());
  fault_point("journal");
  io::pwrite_all(fd_, record, size_, path_);
  size_ += record.size();
  fault_point("journal");
  sync();
}

// Called if the file has no complete record. Throws unless the file looks like a journal that a
// kill or a power loss cut short: a prefix of the first record, or zeros.
void journal_file::expect_torn() const {
  std::array<std::byte, head_bytes + 1> start{};
  const std::size_t size = io::pread_some(fd_, start, 0, path_);
  const bool zeros = std::ranges::all_of(start, [](std::byte b) { return b == std::byte{0}; });
  if (size < start.size() || zeros || start.back() == first_kind) return;
  throw config_error(fmt::format(
      "{} is not a journal of this program; move it away, or pass another --output-prefix",
      path_.string()));
}

void journal_file::clear() {
  fault_point("journal");
  if (io::uninterrupted([&] { return ::ftruncate(fd_.get(), 0); }) != 0) {
    throw io_error(path_, "ftruncate", errno);
  }
  size_ = 0;
  sync();
}

void journal_file::sync_names() {
  fault_point("journal");
  io::sync_folder(folder_, io::parent_folder(path_));
}

void journal_file::sync() {
  if (io::uninterrupted([&] { return ::fdatasync(fd_.get()); }) != 0) {
    throw io_error(path_, "fsync", errno);
  }
}

void journal_file::remove() {
  if (io::is_named(fd_, path_)) io::remove_if_exists(path_);
  sync_names();
}

}  // namespace millrace::preprocess

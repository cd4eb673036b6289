// SPDX-License-Identifier: Apache-2.0
#include "merge/shuffle_spill.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/free_memory.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

/// The header of a document in the file. The document's lengths, modes and tokens follow the
/// header, then its mask. Each of these five items is padded to a multiple of eight bytes.
struct record {
  std::uint64_t turn = 0;
  std::uint64_t sequences = 0;
  std::uint64_t token_bytes = 0;
  std::uint64_t has_modes = 0;
  std::uint64_t mask_bytes = 0;
  std::uint64_t input = 0;
  std::int64_t line = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

constexpr std::uint64_t padded(std::uint64_t size) noexcept {
  return (size + 7) / 8 * 8;
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
  to.resize(padded(to.size()));
}

}  // namespace

std::uint64_t shuffle_spill::turns_of_part(std::uint64_t documents, std::uint64_t bytes) noexcept {
  const std::uint64_t parts = std::max(bytes / part_bytes, documents / part_documents) + 1;
  return std::max<std::uint64_t>(documents / parts + (documents % parts != 0 ? 1 : 0), 1);
}

std::uint64_t shuffle_spill::size_of(std::size_t sequences, bool modes, std::uint64_t token_bytes,
                                     std::uint64_t mask_bytes) noexcept {
  return sizeof(record) + padded(4 * std::uint64_t{sequences}) + (modes ? padded(sequences) : 0) +
         padded(token_bytes) + padded(mask_bytes);
}

shuffle_spill::shuffle_spill(const std::filesystem::path& path, std::uint64_t turns_of_part,
                             std::span<const std::uint64_t> part_sizes, stop_flag stop)
    : file_(path),
      stop_(std::move(stop)),
      turns_of_part_(turns_of_part),
      parts_(part_sizes.size()) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  most_pending_ = std::max<std::size_t>(buffer_bytes / std::max<std::size_t>(parts_.size(), 1),
                                        std::size_t{16} << 10);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].begin = parts_[i].end = file_bytes_;
    parts_[i].left = part_sizes[i];
    file_bytes_ += (part_sizes[i] + page - 1) / page * page;  // parts are mapped separately
  }
}

void shuffle_spill::begin() {
  file_.resize(file_bytes_);
}

void shuffle_spill::add(const spilled_document& document) {
  part& to = parts_.at(document.turn / turns_of_part_);
  const std::uint64_t size = size_of(document.lengths.size(), !document.modes.empty(),
                                     document.tokens.size(), document.mask.size());
  if (size > to.left) {  // the document would overwrite the next part
    throw io_error(file_.partial_path(), "write (an input was replaced by another process)",
                   ESTALE);
  }
  to.left -= size;
  const record head{document.turn,          document.lengths.size(),
                    document.tokens.size(), document.modes.empty() ? 0U : 1U,
                    document.mask.size(),   document.place.input,
                    document.place.line,    document.place.begin,
                    document.place.end};
  append(to.pending, std::as_bytes(std::span(&head, 1)));
  append(to.pending, std::as_bytes(document.lengths));
  append(to.pending, std::as_bytes(document.modes));
  append(to.pending, document.tokens);
  append(to.pending, document.mask);
  if (to.pending.size() >= most_pending_) flush(to);
}

void shuffle_spill::flush(part& to) {
  for (std::span<const std::byte> rest = to.pending; !rest.empty();) {
    stop_.check();
    const auto next = rest.first(std::min(rest.size(), written_bytes_at_a_time));
    io::pwrite_all(file_.fd(), next, to.end, file_.partial_path(), io::page_cache::pass_through);
    to.end += next.size();
    rest = rest.subspan(next.size());
  }
  if (to.pending.capacity() > 2 * most_pending_) {
    formats::free_memory(to.pending);  // the buffer of a giant document
  } else {
    to.pending.clear();
  }
}

void shuffle_spill::flush_all() {
  for (part& to : parts_) {
    flush(to);
    formats::free_memory(to.pending);
  }
}

void shuffle_spill::open_part(std::size_t i) {
  stop_.check();
  const std::uint64_t size = parts_[i].end - parts_[i].begin;
  entries_.clear();
  bytes_ = {};
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.fd().get(),
                         static_cast<::off_t>(parts_[i].begin));
  if (address == MAP_FAILED) throw io_error(file_.partial_path(), "mmap", errno);
  mapping_ = {static_cast<std::byte*>(address), size};
  bytes_ = mapping_;
  // Let the kernel start reading the whole part now. Otherwise, reading each document would wait
  // for the disk.
  (void)::madvise(address, size, MADV_WILLNEED);
  for (std::uint64_t offset = 0; offset < size;) {
    const spilled_document document = document_at(offset);
    entries_.push_back({document.turn, offset});
    offset += size_of(document.lengths.size(), !document.modes.empty(), document.tokens.size(),
                      document.mask.size());
  }
  std::ranges::sort(entries_, {}, &entry::turn);
}

void shuffle_spill::close_part() noexcept {
  if (!mapping_.empty()) (void)::munmap(mapping_.data(), mapping_.size());
  mapping_ = {};
  bytes_ = {};
}

spilled_document shuffle_spill::document_at(std::uint64_t offset) const {
  const std::byte* at = bytes_.data() + offset;
  record head;
  std::memcpy(&head, at, sizeof head);
  at += sizeof head;
  spilled_document document;
  document.turn = head.turn;
  document.place = {static_cast<std::uint32_t>(head.input), head.line, head.begin, head.end};
  // These casts are safe: this class wrote the data aligned to eight bytes, and the mapping begins
  // at a page boundary.
  document.lengths = {reinterpret_cast<const std::int32_t*>(at), head.sequences};
  at += padded(4 * head.sequences);
  if (head.has_modes != 0) {
    document.modes = {reinterpret_cast<const std::int8_t*>(at), head.sequences};
    at += padded(head.sequences);
  }
  document.tokens = {at, head.token_bytes};
  at += padded(head.token_bytes);
  document.mask = {at, head.mask_bytes};
  return document;
}

}  // namespace millrace::preprocess

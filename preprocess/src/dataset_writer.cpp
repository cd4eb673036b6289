// SPDX-License-Identifier: Apache-2.0
#include "dataset_writer.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <vector>

#include <millrace/formats/mmidx.hpp>

namespace millrace::preprocess {
namespace {

constexpr std::size_t chunk_entries = std::size_t{64} << 10;

std::filesystem::path spill_path(const std::filesystem::path& prefix, const char* what) {
  auto path = prefix;
  path += what;
  return path;
}

}  // namespace

dataset_writer::dataset_writer(const std::filesystem::path& prefix, formats::dtype type,
                               bool multimodal)
    : type_(type),
      paths_(prefix),
      bin_(paths_.bin),
      idx_(paths_.idx),
      documents_spill_(spill_path(prefix, ".documents")) {
  if (multimodal) modes_spill_.emplace(spill_path(prefix, ".modes"));
  // The counts are not known yet; finish() writes this header again.
  idx_.append(formats::encode_mmidx_header(type_, 0, 0));
}

void dataset_writer::append(std::span<const std::byte> ids, std::span<const std::int32_t> lengths,
                            std::span<const std::int64_t> document_ends,
                            std::span<const std::int8_t> modes) {
  assert(modes.size() == (modes_spill_ ? lengths.size() : 0));
  bin_.append(ids);
  idx_.append(std::as_bytes(lengths));
  std::array<std::int64_t, 4096> absolute;
  for (std::size_t done = 0; done < document_ends.size();) {
    const auto part =
        document_ends.subspan(done, std::min(absolute.size(), document_ends.size() - done));
    for (std::size_t i = 0; i < part.size(); ++i) absolute[i] = sequences_ + part[i];
    documents_spill_->append(std::as_bytes(std::span(absolute).first(part.size())));
    done += part.size();
  }
  if (modes_spill_) modes_spill_->append(std::as_bytes(modes));
  sequences_ += static_cast<std::int64_t>(lengths.size());
  documents_ += static_cast<std::int64_t>(document_ends.size());
}

void dataset_writer::finish() {
  write_pointers();
  const std::int64_t first_document = 0;
  idx_.append(std::as_bytes(std::span(&first_document, 1)));
  append_spill(*documents_spill_);
  if (modes_spill_) append_spill(*modes_spill_);
  documents_spill_.reset();
  modes_spill_.reset();
  io::pwrite_all(idx_.fd(),
                 formats::encode_mmidx_header(type_, static_cast<std::uint64_t>(sequences_),
                                              static_cast<std::uint64_t>(documents_)),
                 0, idx_.partial_path());
  bin_.sync();
  idx_.sync();
}

void dataset_writer::publish() {
  if (io::remove_if_exists(paths_.idx)) io::sync_folder(io::parent_folder(paths_.idx));
  bin_.commit();
  idx_.commit();
}

// Reads the lengths back, a chunk at a time, and appends the prefix sums of their bytes.
void dataset_writer::write_pointers() {
  std::vector<std::int32_t> lengths(chunk_entries);
  std::vector<std::int64_t> pointers(chunk_entries);
  const auto item = static_cast<std::int64_t>(formats::size_bytes(type_));
  const auto total = static_cast<std::uint64_t>(sequences_);
  std::int64_t pointer = 0;
  for (std::uint64_t done = 0; done < total;) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk_entries, total - done));
    const auto bytes = std::as_writable_bytes(std::span(lengths).first(count));
    const std::uint64_t at = formats::mmidx_header_bytes + 4 * done;
    if (io::pread_some(idx_.fd(), bytes, at, idx_.partial_path()) != bytes.size()) {
      throw io_error(idx_.partial_path(), "read back (was it changed by someone else?)", EIO);
    }
    for (std::size_t i = 0; i < count; ++i) {
      pointers[i] = pointer;
      pointer += lengths[i] * item;
    }
    idx_.append(std::as_bytes(std::span(pointers).first(count)));
    done += count;
  }
}

void dataset_writer::append_spill(io::atomic_file& spill) {
  std::vector<std::byte> chunk(chunk_entries * 8);
  for (std::uint64_t done = 0; done < spill.size_bytes();) {
    const std::size_t n = io::pread_some(spill.fd(), chunk, done, spill.partial_path());
    if (n == 0) {
      throw io_error(spill.partial_path(), "read back (was it changed by someone else?)", EIO);
    }
    idx_.append(std::span(chunk).first(n));
    done += n;
  }
}

}  // namespace millrace::preprocess

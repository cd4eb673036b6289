// SPDX-License-Identifier: Apache-2.0
#include "merge/shuffled_dataset.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/file_ops.hpp>

#include "merge/merge_space.hpp"
#include "output/dataset_writer.hpp"
#include "run/fault_point.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t pending_bytes = std::size_t{1} << 20;
constexpr std::size_t pending_places = std::size_t{1} << 14;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

shuffled_dataset::shuffled_dataset(const std::filesystem::path& prefix,
                                   const shuffled_layout& layout)
    : layout_(layout),
      paths_(prefix),
      bin_(paths_.bin),
      idx_(paths_.idx),
      lengths_{formats::mmidx_header_bytes},
      pointers_{lengths_.offset + 4 * layout.sequences},
      documents_{pointers_.offset + 8 * layout.sequences},
      modes_{documents_.offset + 8 * (layout.documents + 1)} {
  if (layout.checksums) {
    checksums_.emplace(paths_.of(sidecar::sum), io::atomic_file::start::afresh);
  }
  if (layout.provenance) {
    provenance_.emplace(paths_.of(sidecar::src), io::atomic_file::start::afresh);
  }
  // atomic_file counts what is appended: the whole length first, then each array in place.
  const std::uint64_t size = modes_.offset + (layout.multimodal ? layout.sequences : 0);
  idx_.append(formats::encode_mmidx_header(layout.type, layout.sequences, layout.documents));
  reserve_whole(prefix, std::array{known_file{&bin_, layout.bin_bytes},
                                   known_file{&idx_, size - idx_.size_bytes()}});
  const std::vector<std::byte> zeros(pending_bytes);
  while (idx_.size_bytes() < size) {
    idx_.append(
        std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), size - idx_.size_bytes())));
  }
  put(documents_, bytes_of(sequences_));
}

void shuffled_dataset::put(column& to, std::span<const std::byte> bytes) {
  to.pending.insert(to.pending.end(), bytes.begin(), bytes.end());
  if (to.pending.size() >= pending_bytes) flush(to);
}

void shuffled_dataset::flush(column& to) {
  io::pwrite_all(idx_.fd(), to.pending, to.offset, idx_.partial_path());
  to.offset += to.pending.size();
  to.pending.clear();
}

void shuffled_dataset::append(const spilled_document& document) {
  const auto write = [&](std::span<const std::byte> tokens) {
    bin_.append(tokens, io::page_cache::pass_through);
    if (checksums_) checksums_->add(tokens);
  };
  if (document.tokens.size() < pending_bytes) {
    tokens_.insert(tokens_.end(), document.tokens.begin(), document.tokens.end());
  }
  if (tokens_.size() >= pending_bytes || document.tokens.size() >= pending_bytes) {
    write(tokens_);
    tokens_.clear();
  }
  if (document.tokens.size() >= pending_bytes) write(document.tokens);
  const auto item = static_cast<std::int64_t>(formats::size_bytes(layout_.type));
  for (const std::int32_t length : document.lengths) {
    put(pointers_, bytes_of(pointer_));
    pointer_ += length * item;
  }
  put(lengths_, std::as_bytes(document.lengths));
  if (layout_.multimodal) put(modes_, std::as_bytes(document.modes));
  sequences_ += static_cast<std::int64_t>(document.lengths.size());
  put(documents_, bytes_of(sequences_));
  if (!provenance_) return;
  places_.push_back(document.place);
  if (places_.size() == pending_places) append_places();
}

void shuffled_dataset::append_places() {
  provenance_->append(places_);
  places_.clear();
}

void shuffled_dataset::finish(std::span<const std::string> inputs,
                              std::optional<dataset_meta>& meta) {
  if (static_cast<std::uint64_t>(sequences_) != layout_.sequences) {
    throw io_error(paths_.idx, "write (an input was replaced by another process)", ESTALE);
  }
  bin_.append(tokens_, io::page_cache::pass_through);
  if (checksums_) checksums_->add(tokens_);
  for (column* to : {&lengths_, &pointers_, &documents_, &modes_}) flush(*to);
  if (provenance_) {
    append_places();
    provenance_->finish(inputs);
  }
  const std::string root = checksums_ ? checksums_->finish(idx_) : std::string();
  std::optional<io::atomic_file> meta_file;
  if (meta) {
    if (!root.empty()) meta->sum_root = root;
    const std::string json = to_json(*meta);
    meta_file.emplace(paths_.of(sidecar::meta));
    meta_file->append(std::as_bytes(std::span(json)));
  }
  const auto sync = [](io::atomic_file& file) {
    fault_point("sync");
    file.sync();
  };
  if (meta_file) sync(*meta_file);
  sync(bin_);
  io::drop_synced(bin_.fd());
  sync(idx_);
  if (checksums_) sync(checksums_->file());
  if (provenance_) sync(provenance_->file());
  publish_dataset(paths_,
                  {meta_file.has_value(), checksums_.has_value(), provenance_.has_value(), false});
}

}  // namespace millrace::preprocess

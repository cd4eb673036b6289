// SPDX-License-Identifier: Apache-2.0
#include "merge/shuffled_dataset.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/dataset_writer.hpp"
#include "process/fault_point.hpp"

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
                                   const shuffled_layout& layout, stop_flag stop)
    : layout_(layout),
      stop_(std::move(stop)),
      paths_(prefix),
      bin_(paths_.bin),
      idx_(paths_.idx),
      lengths_{formats::mmidx_header_bytes},
      pointers_{lengths_.offset + 4 * layout.sequences},
      documents_{pointers_.offset + 8 * layout.sequences},
      modes_{documents_.offset + 8 * (layout.documents + 1)} {
  idx_bytes_ = modes_.offset + (layout.multimodal ? layout.sequences : 0);
  if (layout.checksums) {
    checksums_.emplace(paths_.of(sidecar::sum), io::atomic_file::start::afresh);
  }
  if (layout.provenance) {
    provenance_.emplace(paths_.of(sidecar::src), io::atomic_file::start::afresh);
  }
  if (layout.mask) mask_.emplace(io::atomic_file(paths_.of(sidecar::mask)));
}

std::vector<room_claim> shuffled_dataset::claims(std::uint64_t src_bytes,
                                                 std::uint64_t meta_bytes) {
  std::vector<room_claim> all = {{&bin_, layout_.bin_bytes}, {&idx_, idx_bytes_}};
  if (checksums_) all.push_back({&checksums_->file(), sum_bytes(layout_.bin_bytes, idx_bytes_)});
  if (provenance_) {
    all.push_back({&provenance_->file(), src_bytes});
    all.push_back({&provenance_->directory(),
                   formats::src_group_bytes * formats::src_group_count(layout_.documents)});
  }
  if (mask_) {
    all.push_back({&mask_->file(),
                   formats::mask_bytes(layout_.bin_bytes / formats::size_bytes(layout_.type))});
  }
  if (meta_bytes != 0) all.push_back({nullptr, meta_bytes});
  return all;
}

// Gives the `.idx` its full size now. flush() later writes each array directly to its place, and
// atomic_file does not count such writes in its size.
void shuffled_dataset::begin() {
  idx_.append(formats::encode_mmidx_header(layout_.type, layout_.sequences, layout_.documents));
  idx_.resize(idx_bytes_);
  put(documents_, bytes_of(sequences_));
}

void shuffled_dataset::put(column& to, std::span<const std::byte> bytes) {
  to.pending.insert(to.pending.end(), bytes.begin(), bytes.end());
  if (to.pending.size() >= pending_bytes) flush(to);
}

void shuffled_dataset::flush(column& to) {
  stop_.check();
  io::pwrite_all(idx_.fd(), to.pending, to.offset, idx_.partial_path());
  to.offset += to.pending.size();
  to.pending.clear();
}

void shuffled_dataset::write(std::span<const std::byte> tokens) {
  while (!tokens.empty()) {  // in chunks, because a document may have gigabytes of tokens
    stop_.check();
    const auto part = tokens.first(std::min(tokens.size(), written_bytes_at_a_time));
    bin_.append(part, io::page_cache::pass_through);
    if (checksums_) checksums_->add(part);
    tokens = tokens.subspan(part.size());
  }
}

void shuffled_dataset::append(const spilled_document& document) {
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
  if (mask_) {
    const std::uint64_t tokens = document.tokens.size() / static_cast<std::uint64_t>(item);
    bits_.append(formats::bit_span(document.mask, tokens), 0, tokens);
    if (bits_.size() >= 8 * pending_bytes) append_bits();
  }
  if (!provenance_) return;
  places_.push_back(document.place);
  if (places_.size() == pending_places) append_places();
}

void shuffled_dataset::append_bits() {
  mask_->append(bits_.bits(), 0, bits_.size());
  bits_.clear();
}

void shuffled_dataset::append_places() {
  provenance_->append(places_);
  places_.clear();
}

void shuffled_dataset::finish(std::span<const formats::src_input> inputs,
                              std::optional<formats::dataset_meta>& meta) {
  if (static_cast<std::uint64_t>(sequences_) != layout_.sequences) {
    throw io_error(paths_.idx, "write (an input was replaced by another process)", ESTALE);
  }
  write(tokens_);
  for (column* to : {&lengths_, &pointers_, &documents_, &modes_}) flush(*to);
  if (provenance_) {
    append_places();
    provenance_->finish(inputs);
    // Free reserved space that was not needed.
    provenance_->file().resize(provenance_->file().size_bytes());
  }
  const std::string root =
      checksums_ ? checksums_->finish(idx_, *layout_.checksums, stop_) : std::string();
  std::string mask_root;
  if (mask_) {
    append_bits();
    mask_root = mask_->finish();
  }
  std::optional<io::atomic_file> meta_file;
  if (meta) {
    if (!root.empty()) meta->sum_root = root;
    if (meta->mask) meta->mask->root = mask_root;
    const std::string json = to_json(*meta);
    meta_file.emplace(paths_.of(sidecar::meta));
    meta_file->append(std::as_bytes(std::span(json)));
  }
  const auto sync = [&](io::atomic_file& file) {
    stop_.check();
    fault_point("sync");
    file.sync();
  };
  if (meta_file) sync(*meta_file);
  sync(bin_);
  io::drop_synced(bin_.fd());
  sync(idx_);
  if (checksums_) sync(checksums_->file());
  if (provenance_) sync(provenance_->file());
  if (mask_) sync(mask_->file());
  stop_.check();
  publish_dataset(paths_, {meta_file.has_value(), checksums_.has_value(), provenance_.has_value(),
                           false, mask_.has_value()});
}

}  // namespace millrace::preprocess

// SPDX-License-Identifier: Apache-2.0
#include "merge/sized_dataset.hpp"

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

sized_dataset::sized_dataset(const std::filesystem::path& prefix, const sized_layout& layout,
                             stop_flag stop)
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
  if (layout.bad) bad_.emplace(paths_.of(sidecar::bad));
  if (layout.duplicates) duplicates_.emplace(paths_.of(sidecar::duplicates));
}

std::vector<room_claim> sized_dataset::claims(const unsure_bytes& most) {
  std::vector<room_claim> all = {{&bin_, layout_.bin_bytes}, {&idx_, idx_bytes_}};
  if (checksums_) all.push_back({&checksums_->file(), sum_bytes(layout_.bin_bytes, idx_bytes_)});
  if (provenance_) {
    all.push_back({&provenance_->file(), most.src});
    all.push_back({&provenance_->directory(),
                   formats::src_group_bytes * formats::src_group_count(layout_.documents)});
  }
  if (mask_) {
    all.push_back({&mask_->file(),
                   formats::mask_bytes(layout_.bin_bytes / formats::size_bytes(layout_.type))});
  }
  if (bad_) all.push_back({&*bad_, most.bad});
  if (duplicates_) all.push_back({&*duplicates_, most.duplicates});
  if (most.meta != 0) all.push_back({nullptr, most.meta});
  return all;
}

// Gives the `.idx` its full size now. flush() later writes each array directly to its place, and
// atomic_file does not count such writes in its size.
void sized_dataset::begin() {
  idx_.append(formats::encode_mmidx_header(layout_.type, layout_.sequences, layout_.documents));
  idx_.resize(idx_bytes_);
  put(documents_, bytes_of(sequences_));
}

void sized_dataset::put(column& to, std::span<const std::byte> bytes) {
  to.pending.insert(to.pending.end(), bytes.begin(), bytes.end());
  if (to.pending.size() >= pending_bytes) flush(to);
}

void sized_dataset::flush(column& to) {
  stop_.check();
  io::pwrite_all(idx_.fd(), to.pending, to.offset, idx_.partial_path());
  to.offset += to.pending.size();
  to.pending.clear();
}

void sized_dataset::write(std::span<const std::byte> tokens) {
  while (!tokens.empty()) {  // in chunks, because a document may have gigabytes of tokens
    stop_.check();
    const auto part = tokens.first(std::min(tokens.size(), written_bytes_at_a_time));
    bin_.append(part, io::page_cache::pass_through);
    if (checksums_) checksums_->add(part);
    tokens = tokens.subspan(part.size());
  }
}

void sized_dataset::append_tokens(std::span<const std::byte> tokens) {
  if (tokens.size() < pending_bytes) tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (tokens_.size() >= pending_bytes || tokens.size() >= pending_bytes) {
    write(tokens_);
    tokens_.clear();
  }
  if (tokens.size() >= pending_bytes) write(tokens);
}

void sized_dataset::append_mask(const formats::bit_span& bits, std::uint64_t first,
                                std::uint64_t last) {
  if (!mask_) return;
  bits_.append(bits, first, last);
  if (bits_.size() >= 8 * pending_bytes) append_bits();
}

void sized_dataset::end_document(std::span<const std::int32_t> lengths,
                                 std::span<const std::int8_t> modes,
                                 const formats::source_place& place) {
  const auto item = static_cast<std::int64_t>(formats::size_bytes(layout_.type));
  for (const std::int32_t length : lengths) {
    put(pointers_, bytes_of(pointer_));
    pointer_ += length * item;
  }
  put(lengths_, std::as_bytes(lengths));
  if (layout_.multimodal) put(modes_, std::as_bytes(modes));
  sequences_ += static_cast<std::int64_t>(lengths.size());
  put(documents_, bytes_of(sequences_));
  ++document_count_;
  if (!provenance_) return;
  places_.push_back(place);
  if (places_.size() == pending_places) append_places();
}

void sized_dataset::append_duplicate(std::string_view line) {
  duplicate_lines_ += line;
  if (duplicate_lines_.size() >= pending_bytes) append_duplicates();
}

void sized_dataset::append_duplicates() {
  duplicates_->append(std::as_bytes(std::span(duplicate_lines_)));
  duplicate_lines_.clear();
}

void sized_dataset::append_bits() {
  mask_->append(bits_.bits(), 0, bits_.size());
  bits_.clear();
}

void sized_dataset::append_places() {
  provenance_->append(places_);
  places_.clear();
}

void sized_dataset::finish(std::span<const formats::src_input> inputs,
                           std::optional<formats::dataset_meta>& meta) {
  if (static_cast<std::uint64_t>(sequences_) != layout_.sequences ||
      document_count_ != layout_.documents) {
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
  for (auto* lines : {&bad_, &duplicates_}) {
    if (lines == &duplicates_ && *lines) append_duplicates();
    if (*lines) (*lines)->resize((*lines)->size_bytes());  // frees reserved space as well
  }
  const std::string root =
      checksums_ ? checksums_->finish(idx_, *layout_.checksums, stop_) : std::string();
  std::string mask_root;
  std::int64_t trained = 0;
  if (mask_) {
    append_bits();
    trained = static_cast<std::int64_t>(mask_->save().trained);
    mask_root = mask_->finish();
  }
  std::optional<io::atomic_file> meta_file;
  if (meta) {
    if (!root.empty()) meta->sum_root = root;
    if (meta->mask) {
      meta->mask->trained = trained;
      meta->mask->root = mask_root;
    }
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
  for (auto* lines : {&bad_, &duplicates_}) {
    if (*lines) sync(**lines);
  }
  stop_.check();
  const auto has_lines = [](const std::optional<io::atomic_file>& file) {
    return file && file->size_bytes() != 0;
  };
  sidecar_set sidecars{};
  const auto note = [&](sidecar which, bool is_there) {
    sidecars[static_cast<std::size_t>(which)] = is_there;
  };
  note(sidecar::meta, meta_file.has_value());
  note(sidecar::sum, checksums_.has_value());
  note(sidecar::src, provenance_.has_value());
  note(sidecar::mask, mask_.has_value());
  note(sidecar::bad, has_lines(bad_));
  note(sidecar::duplicates, has_lines(duplicates_));
  publish_dataset(paths_, sidecars);
}

}  // namespace millrace::preprocess

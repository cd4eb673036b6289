// SPDX-License-Identifier: Apache-2.0
#include "output/part_joiner.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>
#include <millrace/formats/mmidx.hpp>

#include "input/read_back.hpp"

namespace millrace::preprocess {
namespace {

// Returns the end of a chunk of complete items that starts at `from`. The chunk has about
// `chunk_bytes`, but at least one item, and does not extend past `end`.
std::uint64_t end_of_chunk(std::uint64_t from, std::uint64_t end, std::size_t chunk_bytes,
                           std::uint64_t item_bytes) {
  const std::uint64_t most = std::max<std::uint64_t>(chunk_bytes / item_bytes, 1) * item_bytes;
  return from + std::min(end - from, most);
}

}  // namespace

part_joiner::part_joiner(dataset_writer& whole, std::span<dataset_writer* const> parts,
                         std::span<const std::string> inputs, std::size_t chunk_bytes)
    : whole_(whole),
      parts_(parts),
      inputs_(inputs),
      chunk_bytes_(std::min(chunk_bytes, read_back_bytes)) {}

// A part's document ends are relative to the start of the part, but append() takes them relative to
// the current end of the whole. Both are the same place only until lengths of the part are
// appended. So the document ends are copied before the lengths.
bool part_joiner::next() {
  for (; part_ < parts_.size(); ++part_) {
    dataset_writer& part = *parts_[part_];
    const dataset_state end = part.state();
    const dataset_state now = whole_.state();
    const std::int64_t documents = now.documents - before_.documents;
    const std::int64_t sequences = now.sequences - before_.sequences;
    const std::uint64_t bin_bytes = now.bin_bytes - before_.bin_bytes;
    const std::uint64_t places = now.provenance.documents - before_.provenance.documents;
    if (documents < end.documents) return copy_documents(part, documents), true;
    if (sequences < end.sequences) return copy_lengths(part, sequences), true;
    if (bin_bytes < end.bin_bytes) return copy_tokens(part, bin_bytes), true;
    if (places < end.provenance.documents) return copy_places(part, places), true;
    before_.documents += end.documents;
    before_.sequences += end.sequences;
    before_.bin_bytes += end.bin_bytes;
    before_.provenance.documents += end.provenance.documents;
    places_.reset();
    src_.reset();
  }
  return false;
}

void part_joiner::copy_documents(dataset_writer& part, std::int64_t from) {
  const auto begin = static_cast<std::uint64_t>(from) * 8;
  const auto all = static_cast<std::uint64_t>(part.document_count()) * 8;
  std::vector<std::int64_t> ends;
  read_back(part.document_ends(), begin, end_of_chunk(begin, all, chunk_bytes_, 8),
            [&](auto bytes) {
              const formats::unaligned_span<std::int64_t> read(bytes);
              ends.resize(read.size());
              for (std::size_t i = 0; i < read.size(); ++i) ends[i] = read[i];
              whole_.append({}, {}, ends);
            });
}

void part_joiner::copy_lengths(dataset_writer& part, std::int64_t from) {
  const auto begin = static_cast<std::uint64_t>(from) * 4;
  const auto all = static_cast<std::uint64_t>(part.sequence_count()) * 4;
  const std::uint64_t at = formats::mmidx_header_bytes;
  std::vector<std::int32_t> lengths;
  read_back(part.idx(), at + begin, at + end_of_chunk(begin, all, chunk_bytes_, 4),
            [&](auto bytes) {
              const formats::unaligned_span<std::int32_t> read(bytes);
              lengths.resize(read.size());
              for (std::size_t i = 0; i < read.size(); ++i) lengths[i] = read[i];
              whole_.append({}, lengths, {});
            });
}

void part_joiner::copy_tokens(dataset_writer& part, std::uint64_t from) {
  read_back(part.bin(), from, end_of_chunk(from, part.bin().size_bytes(), chunk_bytes_, 1),
            [&](auto bytes) { whole_.append(bytes, {}, {}); });
}

// Copies complete groups of P.src, so that a state saved between two calls is always at a group
// boundary.
void part_joiner::copy_places(dataset_writer& part, std::uint64_t from) {
  if (!places_) {
    const auto path = part.finish_places(inputs_);
    src_.emplace(path);
    try {
      places_ = formats::parse_src(src_->bytes());
    } catch (const format_error& e) {
      throw e.in(path);
    }
  }
  std::array<formats::source_place, formats::src_group_documents> group;
  const std::uint64_t groups = formats::src_group_count(places_->document_count());
  std::uint64_t next = from / formats::src_group_documents;
  for (std::size_t bytes = 0; next < groups && bytes < chunk_bytes_; bytes += sizeof(group)) {
    const std::size_t count = places_->decode_group(next++, group);
    whole_.append_places(std::span(group).first(count));
  }
  src_->let_go();
}

}  // namespace millrace::preprocess

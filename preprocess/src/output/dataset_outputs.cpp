// SPDX-License-Identifier: Apache-2.0
#include "output/dataset_outputs.hpp"

#include <cassert>
#include <numeric>

#include <millrace/formats/dtype.hpp>

#include "output/part_joiner.hpp"

namespace millrace::preprocess {
namespace {

void open(std::list<dataset_writer>& to, const std::filesystem::path& prefix,
          const dataset_options& options, const std::vector<dataset_state>* from) {
  if (from == nullptr) {
    to.emplace_back(prefix, options);
  } else {
    to.emplace_back(prefix, options, from->at(to.size()));
  }
}

}  // namespace

dataset_outputs::dataset_outputs(std::span<const std::filesystem::path> prefixes,
                                 const dataset_options& options, std::size_t partitions,
                                 const output_states* from)
    : partitions_(partitions), token_bytes_(formats::size_bytes(options.type)) {
  assert(partitions >= 1);
  // Checksums and bad records are written only for the whole datasets, not for partitions.
  dataset_options of_part = options;
  of_part.checksums = of_part.quarantine = false;
  assert(partitions == 1 || (options.cut_keys == 0 && !options.digests));
  assert(prefixes.size() == 1 || !options.digests);
  dataset_options of_whole = options;
  for (const auto& prefix : prefixes) {
    open(wholes_, prefix, of_whole, from != nullptr ? &from->wholes : nullptr);
    ++of_whole.cut_key;
    for (std::size_t i = 0; partitions > 1 && i < partitions; ++i) {
      open(parts_, part_prefix(prefix, i), of_part, from != nullptr ? &from->parts : nullptr);
      part_of_.push_back(&parts_.back());
    }
  }
  if (partitions > 1) slices_.resize(partitions);
}

void dataset_outputs::append(const encoded_block& block, std::int64_t lines_before) {
  std::size_t key = 0;
  for (dataset_writer& writer : wholes_) {
    if (partitions_ > 1) {
      append_column(key++, block, lines_before);
      continue;
    }
    const encoded_column& column = block.columns[key++];
    writer.append_digests(block.digests);
    writer.append({column.ids.data(), column.ids_bytes}, column.lengths, column.document_ends);
    writer.append_mask(column.mask.bits(), 0, column.mask.size());
  }
}

void dataset_outputs::append_column(std::size_t key, const encoded_block& block,
                                    std::int64_t lines_before) {
  const encoded_column& column = block.columns[key];
  const std::byte* ids = column.ids.data();
  auto length = column.lengths.begin();
  std::uint64_t bit = 0;
  for (std::size_t i = 0; i < column.document_ends.size(); ++i) {
    slice& to = slices_[partition_of(lines_before + block.places[i].line)];
    const auto end = column.lengths.begin() + column.document_ends[i];
    const auto tokens = static_cast<std::size_t>(std::accumulate(length, end, std::int64_t{0}));
    to.ids.insert(to.ids.end(), ids, ids + tokens * token_bytes_);
    to.lengths.insert(to.lengths.end(), length, end);
    to.document_ends.push_back(static_cast<std::int64_t>(to.lengths.size()));
    ids += tokens * token_bytes_;
    length = end;
    if (column.mask.size() != 0) to.mask.append(column.mask.bits(), bit, bit + tokens);
    bit += tokens;
  }
  for (std::size_t i = 0; i < partitions_; ++i) {
    slice& from = slices_[i];
    if (from.document_ends.empty()) continue;
    part(key, i).append(from.ids, from.lengths, from.document_ends);
    part(key, i).append_mask(from.mask.bits(), 0, from.mask.size());
    from.ids.clear();
    from.lengths.clear();
    from.document_ends.clear();
    from.mask.clear();
  }
}

void dataset_outputs::append_places(const encoded_block& block, std::int64_t lines_before,
                                    std::span<const formats::source_place> places) {
  if (partitions_ == 1) {
    for (dataset_writer& writer : wholes_) writer.append_places(places);
    return;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    slices_[partition_of(lines_before + block.places[i].line)].places.push_back(places[i]);
  }
  for (std::size_t i = 0; i < partitions_; ++i) {
    if (slices_[i].places.empty()) continue;
    for (std::size_t key = 0; key < wholes_.size(); ++key) {
      part(key, i).append_places(slices_[i].places);
    }
    slices_[i].places.clear();
  }
}

void dataset_outputs::append_cut(const cut_point& point) {
  for (dataset_writer& writer : wholes_) writer.append_cut(point);
}

void dataset_outputs::append_bad(std::string_view line) {
  for (dataset_writer& writer : wholes_) writer.append_bad(line);
}

std::vector<dataset_writer*> dataset_outputs::writers_of_line(std::int64_t line) {
  std::vector<dataset_writer*> writers;
  for (dataset_writer& whole : wholes_) {
    writers.push_back(partitions_ == 1 ? &whole : &part(writers.size(), partition_of(line)));
  }
  return writers;
}

void dataset_outputs::go_back_line(std::int64_t line, const output_states& to) {
  std::size_t key = 0;
  for (dataset_writer* writer : writers_of_line(line)) {
    writer->go_back(partitions_ == 1 ? to.wholes[key]
                                     : to.parts[key * partitions_ + partition_of(line)]);
    ++key;
  }
}

bool dataset_outputs::join(std::span<const formats::src_input> inputs, std::size_t chunk_bytes,
                           const std::function<bool()>& go_on) {
  if (partitions_ == 1) return true;
  std::size_t key = 0;
  for (dataset_writer& whole : wholes_) {
    part_joiner joiner(whole, std::span(part_of_).subspan(key++ * partitions_, partitions_), inputs,
                       chunk_bytes);
    while (joiner.next()) {
      if (!go_on()) return false;
    }
  }
  return true;
}

void dataset_outputs::save(output_states& to) const {
  to.wholes.clear();
  for (const dataset_writer& writer : wholes_) to.wholes.push_back(writer.state());
  to.parts.clear();
  for (const dataset_writer& writer : parts_) to.parts.push_back(writer.state());
}

void dataset_outputs::sync() {
  for (dataset_writer& writer : parts_) writer.sync();
  for (dataset_writer& writer : wholes_) writer.sync();
}
void dataset_outputs::keep() noexcept {
  for (dataset_writer& writer : parts_) writer.keep();
  for (dataset_writer& writer : wholes_) writer.keep();
}
void dataset_outputs::forget() noexcept {
  for (dataset_writer& writer : parts_) writer.forget();
  for (dataset_writer& writer : wholes_) writer.forget();
}

}  // namespace millrace::preprocess

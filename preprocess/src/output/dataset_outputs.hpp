// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/src.hpp>

#include "output/dataset_writer.hpp"
#include "record/encoded_block.hpp"

namespace millrace::preprocess {

/// The progress of the outputs of a run.
struct output_states {
  std::vector<dataset_state> wholes;  ///< one per key
  std::vector<dataset_state> parts;   ///< one per key and partition, key by key; or empty
};

/// The datasets that a run writes, one per key: in input order, or, with P > 1 partitions, first
/// all documents from lines whose number is 0 modulo P, then those with 1, and so on. Each
/// partition is a separate dataset until join() concatenates them.
///
/// Lines are numbered from 0 across all inputs, including blank and bad ones. For one thread,
/// except for sync().
class dataset_outputs {
 public:
  /// @param from  the state to resume from; null for a fresh start
  dataset_outputs(std::span<const std::filesystem::path> prefixes, const dataset_options& options,
                  std::size_t partitions, const output_states* from);

  /// Appends the documents of a block.
  ///
  /// @param lines_before  number of lines before the block's first line
  void append(const encoded_block& block, std::int64_t lines_before);
  /// Appends the origins of the block's documents, in the same order.
  void append_places(const encoded_block& block, std::int64_t lines_before,
                     std::span<const formats::source_place> places);
  /// Appends a line to the P.bad of each key's dataset.
  void append_bad(std::string_view line);

  /// The writers that receive the documents of a line, one per key.
  std::vector<dataset_writer*> writers_of_line(std::int64_t line);
  /// Removes the sequences that these writers got since `to`. No document has ended since then.
  void go_back_line(std::int64_t line, const output_states& to);

  /// Concatenates the partitions, resuming where the whole datasets end. Does nothing without
  /// partitions.
  ///
  /// @param inputs       names for P.src
  /// @param chunk_bytes  approximate number of bytes copied between two calls of `go_on`
  /// @param go_on        returns false to stop; a later call resumes
  /// @return true if everything is in place
  bool join(std::span<const std::string> inputs, std::size_t chunk_bytes,
            const std::function<bool()>& go_on);

  void save(output_states& to) const;
  /// See dataset_writer.
  void sync();
  void keep() noexcept;
  void forget() noexcept;

  std::list<dataset_writer>& wholes() noexcept { return wholes_; }
  std::list<dataset_writer>& parts() noexcept { return parts_; }

 private:
  /// The part of a block that belongs to one partition.
  struct slice {
    std::vector<std::byte> ids;
    std::vector<std::int32_t> lengths;
    std::vector<std::int64_t> document_ends;
    std::vector<formats::source_place> places;
  };
  void append_column(std::size_t key, const encoded_block& block, std::int64_t lines_before);
  std::size_t partition_of(std::int64_t line) const noexcept {
    return static_cast<std::size_t>(line) % partitions_;
  }
  dataset_writer& part(std::size_t key, std::size_t partition) noexcept {
    return *part_of_[key * partitions_ + partition];
  }

  std::size_t partitions_;
  std::size_t token_bytes_;
  std::list<dataset_writer> wholes_;  // lists, since a writer cannot be moved
  std::list<dataset_writer> parts_;
  std::vector<dataset_writer*> part_of_;  // `parts_` by index
  std::vector<slice> slices_;             // reused
};

}  // namespace millrace::preprocess

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

/// How far the outputs of a run are.
struct output_states {
  std::vector<dataset_state> wholes;  ///< one a key
  std::vector<dataset_state> parts;   ///< one a key and partition, key by key; or none at all
};

/// The datasets that a run writes, one a key: in the order of the input, or, with P > 1 partitions,
/// first all documents from lines whose number is 0 modulo P, then those with 1, and so on. Each
/// partition is a dataset of its own until join() puts them one behind the other.
///
/// Lines count from 0 through all inputs, blank and bad ones too. For one thread, but for sync().
class dataset_outputs {
 public:
  /// @param from  what to go on from; null for a fresh start
  dataset_outputs(std::span<const std::filesystem::path> prefixes, const dataset_options& options,
                  std::size_t partitions, const output_states* from);

  /// Appends the documents of a block.
  ///
  /// @param lines_before  how many lines precede the block's first
  void append(const encoded_block& block, std::int64_t lines_before);
  /// Where they come from; in their order.
  void append_places(const encoded_block& block, std::int64_t lines_before,
                     std::span<const formats::source_place> places);
  /// To the dataset of each key.
  void append_bad(std::string_view line);

  /// Whose the documents of a line are, one a key.
  std::vector<dataset_writer*> writers_of_line(std::int64_t line);
  /// Takes back the sequences that these got since `to`, which no document has ended.
  void go_back_line(std::int64_t line, const output_states& to);

  /// Puts partitions one behind the other, from wherever the wholes are; nothing where there are
  /// none.
  ///
  /// @param inputs       names for P.src
  /// @param chunk_bytes  about so many are copied between two calls of `go_on`
  /// @param go_on        false: stop, so that another call goes on later
  /// @return whether all is in place
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
  /// What a block has for one partition.
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
  std::list<dataset_writer> wholes_;  // lists, since a writer does not move
  std::list<dataset_writer> parts_;
  std::vector<dataset_writer*> part_of_;  // those, by number
  std::vector<slice> slices_;             // reused
};

}  // namespace millrace::preprocess

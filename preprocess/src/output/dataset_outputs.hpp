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
  std::vector<dataset_state> parts;   ///< one per key and partition, sorted by key; or empty
};

/// The datasets that a run writes, one per key. With one partition, documents are in input order.
/// With P > 1 partitions, a dataset first has all documents from lines whose index is 0 modulo P,
/// then all documents from lines whose index is 1 modulo P, and so on. Each partition is a separate
/// dataset until join() concatenates the partitions.
///
/// Line indices start at 0 and continue across all inputs. Blank and bad lines also count. Only
/// sync() is thread-safe.
class dataset_outputs {
 public:
  /// @param from  the state to resume from; null for a new run
  dataset_outputs(std::span<const std::filesystem::path> prefixes, const dataset_options& options,
                  std::size_t partitions, const output_states* from);

  /// Appends the documents of a block.
  ///
  /// @param lines_before  number of lines before the block's first line
  void append(const encoded_block& block, std::int64_t lines_before);
  /// Appends the source places of the block's documents, in the order of the documents.
  void append_places(const encoded_block& block, std::int64_t lines_before,
                     std::span<const formats::source_place> places);
  /// Appends a point to each dataset's P.cuts.
  void append_cut(const cut_point& point);
  /// Appends a line to each dataset's P.bad.
  void append_bad(std::string_view line);

  /// The writers that receive the document of a line: one per key.
  std::vector<dataset_writer*> writers_of_line(std::int64_t line);
  /// Takes back the sequences that were appended to the writers of `line` after the state `to` was
  /// saved.
  ///
  /// @pre since then, no document has ended in these writers
  void go_back_line(std::int64_t line, const output_states& to);

  /// Appends the partitions to the whole datasets. Resumes where an earlier call stopped. Does
  /// nothing if there are no partitions.
  ///
  /// @param inputs       the inputs, for P.src
  /// @param chunk_bytes  approximate number of bytes copied between two calls of `go_on`
  /// @param go_on        returns false to stop; a later call of join() then resumes
  /// @return true if all partitions were concatenated
  bool join(std::span<const formats::src_input> inputs, std::size_t chunk_bytes,
            const std::function<bool()>& go_on);

  void save(output_states& to) const;
  /// Call the functions of the same names in all writers: see dataset_writer.
  void sync();
  void keep() noexcept;
  void forget() noexcept;

  std::list<dataset_writer>& wholes() noexcept { return wholes_; }
  std::list<dataset_writer>& parts() noexcept { return parts_; }

 private:
  /// Those documents of a block that belong to one partition.
  struct slice {
    std::vector<std::byte> ids;
    std::vector<std::int32_t> lengths;
    std::vector<std::int64_t> document_ends;
    std::vector<formats::source_place> places;
    formats::bit_buffer mask;
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
  std::list<dataset_writer> wholes_;  // lists, because a writer cannot be moved
  std::list<dataset_writer> parts_;
  std::vector<dataset_writer*> part_of_;  // the elements of `parts_`, by index
  std::vector<slice> slices_;             // a member only to reuse its memory
};

}  // namespace millrace::preprocess

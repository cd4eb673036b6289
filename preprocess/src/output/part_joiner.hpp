// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include <millrace/formats/src.hpp>
#include <millrace/io/file_mapping.hpp>

#include "output/dataset_writer.hpp"

namespace millrace::preprocess {

/// Appends the parts (partitions) of a dataset to the whole dataset, one chunk at a time.
///
/// The progress is stored only in the state of the whole dataset. So after a stop between two calls
/// of next(), another joiner can resume, even in another process. Not thread-safe.
class part_joiner {
 public:
  /// @param whole        receives the parts; may already contain parts that an earlier joiner
  ///                     appended; must outlive this object
  /// @param parts        the parts, in order; must outlive this object
  /// @param inputs       the inputs, for the parts' P.src
  /// @param chunk_bytes  approximate number of bytes copied per call
  part_joiner(dataset_writer& whole, std::span<dataset_writer* const> parts,
              std::span<const formats::src_input> inputs, std::size_t chunk_bytes);

  /// Appends the next chunk. Returns false if nothing was left to append.
  ///
  /// @throws io_error, format_error  a part cannot be read, or has changed since it was written.
  bool next();

 private:
  void copy_documents(dataset_writer& part, std::int64_t from);
  void copy_lengths(dataset_writer& part, std::int64_t from);
  void copy_tokens(dataset_writer& part, std::uint64_t from);
  void copy_places(dataset_writer& part, std::uint64_t from);
  void copy_mask(dataset_writer& part, std::uint64_t from, std::uint64_t end);

  dataset_writer& whole_;
  std::span<dataset_writer* const> parts_;
  std::span<const formats::src_input> inputs_;
  std::size_t chunk_bytes_;
  std::size_t part_ = 0;                 // index of the part that has the next bytes
  dataset_state before_;                 // total size of the parts before `parts_[part_]`
  std::optional<io::file_mapping> src_;  // P.src of parts_[part_]; opened when it is needed
  std::optional<formats::src_view> places_;
};

/// Largest number of partitions. More partitions would need more open files than most machines
/// allow.
inline constexpr int most_partitions = 1024;

/// Returns the prefix of a partition, such as PREFIX.part-00003 for a dataset PREFIX. The names of
/// a partition's files always end in `.partial`, because partitions never become final.
std::filesystem::path part_prefix(std::filesystem::path prefix, std::size_t partition);

/// Removes all partition files of this dataset, including files of earlier runs with any number of
/// partitions.
///
/// @throws io_error  the files cannot be removed.
void remove_part_files(const std::filesystem::path& prefix);

/// Makes sure that the partitions of all keys can be open for writing at the same time. If
/// necessary, raises the limit on open files.
///
/// @throws config_error  the limit on open files is too low and cannot be raised.
void expect_room_for_partitions(std::size_t keys, std::size_t partitions);

}  // namespace millrace::preprocess

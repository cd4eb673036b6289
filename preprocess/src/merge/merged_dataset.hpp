// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <millrace/io/atomic_file.hpp>
#include <millrace/io/detail/mask_writer.hpp>

#include "merge/merge_sidecars.hpp"
#include "merge/merged_layout.hpp"
#include "output/dataset_paths.hpp"
#include "output/dataset_writer.hpp"
#include "output/disk_room.hpp"
#include "output/provenance_writer.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// The whole: a dataset that is merged from parts. Exactly one process has this object, which
/// creates and completes the files. Any number of merge_targets write the tokens, index and
/// checksums of the parts to their places. This object writes the other sidecars (optional files of
/// a few bytes per document), in order and in constant memory.
///
/// No file has its final name before publish_dataset(). The destructor removes all files, unless
/// `keep()` was called. Not thread-safe.
class merged_dataset {
 public:
  /// Creates the partial files, and reserves the space for all of them.
  ///
  /// @param parts     prefixes of the parts, in order
  /// @param sidecars  must outlive this object
  /// @param advice    what the user can do if the disk is too small
  /// @throws io_error  the folder does not exist or is not writable, or another process is writing
  ///                   this dataset.
  /// @throws error     the disk has too little space: see reserve_all().
  /// @throws stopped   `stop` is set.
  merged_dataset(const std::filesystem::path& prefix, const merged_layout& layout,
                 std::span<const std::filesystem::path> parts, const merged_sidecars& sidecars,
                 std::string_view advice, const stop_flag& stop);

  const dataset_paths& paths() const noexcept { return paths_; }

  /// Writes P.src, P.bad and P.mask, if the whole gets them.
  ///
  /// @param parts  prefixes of the parts, in order
  /// @throws stopped  `stop` is set.
  void append_sidecars(std::span<const std::filesystem::path> parts, const stop_flag& stop);

  /// Completes P.sum, writes P.meta, and makes all files durable under their partial names.
  ///
  /// @pre P.sum contains all checksums except its root, and all writers have synced
  /// @throws stopped  `stop` is set.
  void finish(const stop_flag& stop);

  /// Makes the destructor keep the partial files.
  void keep() noexcept;

  /// The sidecars that the dataset has.
  ///
  /// @pre finish() was called
  sidecar_set sidecars() const noexcept;

 private:
  std::vector<room_claim> claims(std::span<const std::filesystem::path> parts);
  template <class Work>
  void for_each_file(Work&& work);

  dataset_paths paths_;
  merged_layout layout_;
  const merged_sidecars& plan_;
  io::atomic_file bin_;
  io::atomic_file idx_;
  std::optional<io::atomic_file> sum_;
  std::optional<provenance_writer> src_;
  std::optional<io::atomic_file> bad_;
  std::optional<io::mask_writer> mask_;
  std::optional<io::atomic_file> meta_;
};

}  // namespace millrace::preprocess

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <millrace/formats/dtype.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "merge/merge_sidecars.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// One run of merge_datasets.
struct merge_options {
  std::filesystem::path input;          ///< `--input`: a folder of .bin/.idx pairs
  std::filesystem::path output_prefix;  ///< `--output-prefix`
  bool multimodal = false;              ///< `--multimodal`: keep the modes of the sequences
  bool overwrite = false;               ///< `--overwrite`
  /// Not zero: the number of a signal that asks to stop. A signal handler may set it; may be null.
  const std::atomic<int>* stop = nullptr;
};

struct merge_summary {
  std::vector<std::filesystem::path> prefixes;  ///< of the inputs, in the order of the output
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  formats::dtype type{};
  std::optional<formats::task_range> tasks;  ///< if those are not all of the run
  std::vector<dropped_sidecar> dropped;  ///< what some of the inputs have, and the output has not
};

/// Concatenates the datasets of a folder, sorted by the bytes of their names, in constant memory
/// and, as far as the tokens go, as fast as files are copied. Every file of the folder must belong
/// to one, hidden files too; folders in it are passed over. Empty datasets may be among them, the
/// first too.
///
/// What lies beside the datasets is merged where all of them have it (a .src or .bad also needs the
/// .meta of all), and what is not is told in the summary; so that the tasks of a run
/// together give each file of one process, byte for byte. Where there are checksums, the parts are
/// held against them.
///
/// @throws config_error  the folder has no dataset, or a file that belongs to none; dtypes differ;
///                       `multimodal` and a dataset has no modes; the output exists; what the
///                       datasets were made of does not go together.
/// @throws io_error, format_error  an input or the output failed, or a part is not what its
///                       checksums say. Nothing shows under the final names.
/// @throws error         the disk has too little room; the message says how much is missing.
/// @throws stopped       `options.stop` was set before the first file got its final name. What was
///                       written is removed, and an old output stays whole.
merge_summary merge(const merge_options& options);

/// The stop flag of a merge, with what becomes of it.
stop_flag stop_flag_of(const merge_options& options);

/// What a user can do if the disk is too small for a merge.
inline constexpr const char* merge_room_advice =
    "nothing was copied yet; free disk space, then start again";

}  // namespace millrace::preprocess

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <millrace/formats/dtype.hpp>
#include <millrace/io/detail/temporary_folder.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "merge/merge_sidecars.hpp"
#include "merge/token_budget.hpp"
#include "process/stop_flag.hpp"
#include "record/duplicates_by.hpp"

namespace millrace::preprocess {

/// One run of merge_datasets.
struct merge_options {
  std::filesystem::path input;          ///< `--input`: a folder of .bin/.idx pairs
  std::filesystem::path output_prefix;  ///< `--output-prefix`
  bool multimodal = false;              ///< `--multimodal`: keep the modes of the sequences
  bool overwrite = false;               ///< `--overwrite`
  bool drop_duplicates = false;         ///< `--drop-duplicates`
  std::optional<std::uint64_t> memory_bytes = std::nullopt;  ///< `--memory`: to find duplicates
  /// If `*stop` is not zero, it is the number of a signal that asks to stop. A signal handler may
  /// set it. May be null.
  const std::atomic<int>* stop = nullptr;
  /// For the message of `stopped`: what happened to the files.
  std::string if_stopped =
      "the new files were removed, and the files that existed before are unchanged";
  /// For the message if the disk is too small: what the user can do.
  std::string room_advice = "nothing was copied yet; free disk space, then start again";
};

/// How a merge drops duplicates: documents that repeat an earlier one.
struct duplicate_options {
  duplicates_by by = duplicates_by::ids;
  /// Memory for finding them: see duplicate_finder. Memory for copying, a few MiB, comes on top.
  std::uint64_t memory_bytes = default_duplicates_bytes;
  /// The parts are one run with `--drop-duplicates`, whole, whose P.meta says so already. With
  /// `--max-tokens`, only the tokens of documents that stay count.
  bool of_one_run = false;
};

struct merge_summary {
  std::vector<std::filesystem::path> prefixes;  ///< input prefixes, in the order of the output
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  formats::dtype type{};
  std::optional<std::int64_t> duplicates;     ///< documents that were dropped, if any may be
  std::optional<formats::task_range> tasks;   ///< set if the output has only some tasks of a run
  std::optional<std::string> stopped_before;  ///< as budgeted_parts::stopped_before
  std::vector<dropped_sidecar> dropped;       ///< sidecars that inputs have, but the output lacks
};

/// Concatenates the datasets of a folder, sorted by the bytes of their names, in constant memory.
/// Tokens are copied at the speed of a file copy. Every file of the folder must belong to a
/// dataset, even a hidden file; subfolders are ignored. Datasets may be empty, including the first.
///
/// A sidecar (an optional file of a dataset, such as P.sum) is merged if all datasets have it. To
/// merge .src or .bad files, all datasets must also have .meta files. The summary lists the
/// sidecars that were dropped. If all tasks of a run are merged, the output equals the output of a
/// single process, byte for byte, also where `--max-tokens` ended that process, or where it dropped
/// duplicates: see write_without_duplicates(). Datasets with checksums are verified.
///
/// @throws config_error  the folder has no dataset, or has a file that belongs to no dataset;
///                       dtypes differ; `multimodal` is set and a dataset has no modes; the output
///                       exists; or the .meta files of the datasets are not compatible.
/// @throws io_error, format_error  reading an input or writing the output failed, or a dataset does
///                                 not match its checksums. In these cases, no file gets its final
///                                 name.
/// @throws error         the disk has too little space; the message says how much is missing.
/// @throws stopped       `options.stop` was set before the first file got its final name. The new
///                       files are removed, and an old output is unchanged.
merge_summary merge(const merge_options& options);

/// The datasets of a merge.
class parts_to_merge {
 public:
  /// Finds the datasets of the folder. If they are tasks with `--max-tokens`, decides which of
  /// them, and how much of the last one, the output gets: see within_budget().
  ///
  /// @throws  as merge()
  parts_to_merge(const merge_options& options, const stop_flag& stop);

  const std::vector<std::filesystem::path>& all() const noexcept { return all_; }
  /// How the output drops duplicates; nothing if it has all documents.
  const std::optional<duplicate_options>& duplicates() const noexcept { return duplicates_; }
  /// Prefixes of what is to be merged. Valid as long as this object lives.
  const std::vector<std::filesystem::path>& used() const noexcept { return used_.prefixes; }
  const std::optional<std::string>& stopped_before() const noexcept { return used_.stopped_before; }

  /// Replaces what is to be merged by one dataset without the duplicates, in a temporary folder.
  /// @pre duplicates()
  merge_summary drop_duplicates(const merge_options& options);

 private:
  std::vector<std::filesystem::path> all_;
  std::optional<duplicate_options> duplicates_;
  std::optional<io::temporary_folder> folder_;
  std::optional<io::temporary_folder> without_duplicates_;
  budgeted_parts used_;
};

/// The stop flag of a merge. Its message says what happened to the files.
stop_flag stop_flag_of(const merge_options& options);

/// Returns the prefixes of the datasets in a folder, sorted by the bytes of their names. Every file
/// of the folder must belong to a dataset, even a hidden file; subfolders are ignored.
///
/// @throws config_error  the folder has no dataset, or has a file that belongs to no dataset or to
///                       an unfinished run.
/// @throws io_error      the folder cannot be read, or has a dangling link.
std::vector<std::filesystem::path> datasets_in(const std::filesystem::path& folder);

/// Checks that the output of a merge is not in its input folder.
///
/// @throws config_error  the output would be in the input folder.
/// @throws io_error      one of the folders cannot be examined.
void expect_another_folder(const std::filesystem::path& output_prefix,
                           const std::filesystem::path& input);

}  // namespace millrace::preprocess

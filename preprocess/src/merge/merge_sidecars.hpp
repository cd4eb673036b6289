// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/meta/dataset_meta.hpp>
#include <millrace/meta/meta_concatenation.hpp>

#include "merge/merge_input.hpp"
#include "output/dataset_paths.hpp"
#include "output/provenance_writer.hpp"
#include "process/stop_flag.hpp"

/// Sidecars (optional files of a dataset: P.meta, P.sum, P.src and P.bad) in a merge. The datasets
/// to merge are called parts, and the merged dataset is called the whole.
namespace millrace::preprocess {

/// Says how to convert the source places of one part to source places of the whole. A source place
/// is the line of an input file from which a document came.
struct part_change {
  formats::part_shift shift;
  /// Offset in the part's first input file at which the whole's share of that file begins.
  std::uint64_t begin = 0;
};

/// A sidecar that at least one part has, but the whole will not have.
struct dropped_sidecar {
  sidecar which;
  std::string why;  ///< a clause that gives the reason, such as which part lacks it
};

/// The sidecars that the whole gets: those that all parts have.
struct merged_sidecars {
  std::optional<formats::dataset_meta> meta;  ///< without the root of P.sum
  std::vector<formats::dataset_meta> parts;   ///< one per part; empty without `meta`
  std::vector<part_change> changes;           ///< one per part; empty without `meta`
  std::optional<std::uint32_t> sum;           ///< the version of P.sum; empty without one
  bool src = false;  ///< true only with `meta`, which says how to shift lines and inputs
  bool bad = false;  ///< true only with `meta`
  bool mask = false;
  std::vector<dropped_sidecar> dropped;  ///< in the order of all_sidecars
};

/// Returns the meta of the whole, as formats::concatenate() does.
///
/// @param metas  one per prefix
/// @throws config_error  the parts are not compatible; the message names the first P.meta that does
///                       not fit.
formats::dataset_meta concatenated(std::span<const std::filesystem::path> prefixes,
                                   std::span<const formats::dataset_meta> metas);

/// Checks the metas of all parts and decides which sidecars the whole gets.
///
/// @throws config_error            the parts are not compatible: see formats::concatenate(); or
/// only
///                                 some parts have a P.mask.
/// @throws io_error, format_error  a meta cannot be read.
merged_sidecars plan_sidecars(std::span<const std::filesystem::path> prefixes);

/// The same for parts that are merged only in part.
///
/// @param metas  one per prefix: of what is merged
merged_sidecars plan_sidecars(std::span<const std::filesystem::path> prefixes,
                              std::vector<formats::dataset_meta> metas);

/// Returns the total size of one sidecar in all parts. The merged sidecar has nearly the same size,
/// or less if documents are dropped.
///
/// @throws io_error  a file cannot be examined.
std::uint64_t bytes_of_all(std::span<const std::filesystem::path> parts, sidecar which);

/// The P.mask of a part.
class part_mask {
 public:
  /// Opens the file and checks every bit.
  ///
  /// @param tokens  of the part
  /// @throws format_error  the file is damaged, or belongs to another dataset.
  part_mask(const std::filesystem::path& path, std::uint64_t tokens);

  const formats::bit_span& bits() const noexcept { return bits_; }

 private:
  io::file_mapping file_;
  formats::bit_span bits_;
};

/// Checks that `meta`, which was read from the P.meta of `input`, describes `input`.
///
/// @throws format_error  `meta` describes a different dataset.
void expect_meta_of(const merge_input& input, const formats::dataset_meta& meta);

/// Checks that `src` and `meta` describe the same dataset.
///
/// @throws format_error  they describe different datasets.
void expect_src_of(const formats::src_view& src, const formats::dataset_meta& meta);

/// Appends the source places of a part's documents to `writer`.
///
/// @param meta   P.meta of the part
/// @param inputs  the input files so far; those of the part are appended
/// @throws io_error, format_error  P.src cannot be read, or describes a different dataset.
/// @throws stopped                 `stop` is set.
void append_places(const dataset_paths& part, const formats::dataset_meta& meta,
                   const formats::part_shift& shift, provenance_writer& writer,
                   std::vector<formats::src_input>& inputs, const stop_flag& stop);

/// Appends the bad records of a part to `file`, if the part has any.
///
/// @param meta    P.meta of the part
/// @param is_cut  `meta` describes only the first records of the part, so P.bad may have more lines
/// @throws io_error      P.bad cannot be read.
/// @throws format_error  P.bad is damaged, or belongs to another dataset.
/// @throws stopped       `stop` is set.
void append_bad_lines(const dataset_paths& part, const formats::dataset_meta& meta,
                      const part_change& change, io::atomic_file& file, const stop_flag& stop,
                      bool is_cut = false);

/// Converts a line of one task's P.bad to a line of the merged P.bad. In P.bad, `line` is the line
/// number of a bad record, and `from_byte` is the offset in the input from which lines are counted.
/// Adds `lines_before` to `line`. Sets `from_byte` to `whole_begin`, or removes `from_byte` if
/// `whole_begin` is 0.
///
/// @return nothing if the line has no `from_byte`. In that case, `line` already counts from the
///         start of the input.
std::optional<std::string> shifted_bad_line(std::string_view line, std::int64_t lines_before,
                                            std::uint64_t whole_begin);

}  // namespace millrace::preprocess

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/formats/src.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/meta/dataset_meta.hpp>
#include <millrace/meta/meta_concatenation.hpp>

#include "merge/merge_input.hpp"
#include "output/dataset_paths.hpp"
#include "output/provenance_writer.hpp"
#include "process/stop_flag.hpp"

/// The sidecars of the parts of a merge and of the whole.
namespace millrace::preprocess {

/// How to convert the places of one part to places of the whole.
struct part_change {
  formats::part_shift shift;
  /// The byte at which the whole begins to read the part's first input.
  std::uint64_t begin = 0;
};

/// A sidecar that some part has, but the whole will not have.
struct dropped_sidecar {
  sidecar which;
  std::string why;  ///< a clause that names the part without it
};

/// The sidecars of the whole: those that all parts have.
struct merged_sidecars {
  std::optional<formats::dataset_meta> meta;  ///< without the root of P.sum
  std::vector<formats::dataset_meta> parts;   ///< one per part, if there is a meta
  std::vector<part_change> changes;           ///< one per part, if there is a meta
  bool sum = false;
  bool src = false;  ///< only with a meta, which says what to add to lines and inputs
  bool bad = false;  ///< likewise
  std::vector<dropped_sidecar> dropped;  ///< in the order of all_sidecars
};

/// Checks the metas of all parts and decides which sidecars the whole gets.
///
/// @throws config_error            the parts are not compatible: see concatenate().
/// @throws io_error, format_error  a meta cannot be read.
merged_sidecars plan_sidecars(std::span<const std::filesystem::path> prefixes);

/// @throws format_error  `meta`, the P.meta of `input`, describes another dataset.
void expect_meta_of(const merge_input& input, const formats::dataset_meta& meta);

/// @throws format_error  `src` and `meta` describe different datasets.
void expect_src_of(const formats::src_view& src, const formats::dataset_meta& meta);

/// Appends the places of a part's documents.
///
/// @param meta   P.meta of the part
/// @param names  names of the inputs so far; the part's names are appended
/// @throws io_error, format_error  P.src cannot be read, or describes another dataset.
/// @throws stopped                 `stop` is set.
void append_places(const dataset_paths& part, const formats::dataset_meta& meta,
                   const formats::part_shift& shift, provenance_writer& writer,
                   std::vector<std::string>& names, const stop_flag& stop);

/// Appends the bad records of a part, if it has any.
/// @throws io_error  P.bad cannot be read.
/// @throws stopped   `stop` is set.
void append_bad_lines(const dataset_paths& part, const part_change& change, io::atomic_file& file,
                      const stop_flag& stop);

}  // namespace millrace::preprocess

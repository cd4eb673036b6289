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

/// What lies beside the parts of a merge, and beside the whole.
namespace millrace::preprocess {

/// How the places of one part become those of the whole.
struct part_change {
  formats::part_shift shift;
  std::uint64_t begin = 0;  ///< of the input, in the whole, that the part's first one belongs to
};

/// A sidecar that some part has and the whole will not have.
struct dropped_sidecar {
  sidecar which;
  std::string why;  ///< a clause that names the part which lacks it
};

/// What the whole gets: a sidecar that all parts have.
struct merged_sidecars {
  std::optional<formats::dataset_meta> meta;  ///< without the root of P.sum
  std::vector<formats::dataset_meta> parts;   ///< one each, if there is a meta
  std::vector<part_change> changes;           ///< one each, if there is a meta
  bool sum = false;
  bool src = false;  ///< only with a meta, which says what to add to lines and inputs
  bool bad = false;  ///< likewise
  std::vector<dropped_sidecar> dropped;  ///< in the order of all_sidecars
};

/// Looks at the metas of all parts.
///
/// @throws config_error            the parts do not go together: see concatenate().
/// @throws io_error, format_error  a meta cannot be read.
merged_sidecars plan_sidecars(std::span<const std::filesystem::path> prefixes);

/// @throws format_error  `meta`, which lies beside `input`, is of another dataset.
void expect_meta_of(const merge_input& input, const formats::dataset_meta& meta);

/// @throws format_error  `src` is of another dataset than `meta`.
void expect_src_of(const formats::src_view& src, const formats::dataset_meta& meta);

/// Appends the places of a part's documents.
///
/// @param meta   of the part
/// @param names  of the inputs so far; gets those of this part
/// @throws io_error, format_error  P.src cannot be read, or is of another dataset.
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

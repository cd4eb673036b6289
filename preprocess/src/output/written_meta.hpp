// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/meta/dataset_meta.hpp>

#include "output/dataset_writer.hpp"
#include "record/encoded_block.hpp"

/// What runs and merges write to P.meta, and read from it.
namespace millrace::preprocess {

/// Reads the P.meta of each dataset.
///
/// @throws io_error, format_error  a P.meta is missing or invalid.
std::vector<formats::dataset_meta> read_metas(std::span<const std::filesystem::path> prefixes);

/// Sets the counts of a dataset in P.meta.
///
/// @param to  has the kinds of bad records that the run knows
void set_counts(formats::meta_counts& to, const record_counts& found, const dataset_state& output,
                formats::dtype type);
/// The counts of records in P.meta. Kinds of bad records of other programs are left out.
record_counts record_counts_of(const formats::meta_counts& said);

/// Returns the value of an option in P.meta, or null. It belongs to `meta`.
const std::string* option_of(const formats::dataset_meta& meta, std::string_view name);
/// Removes an option.
void drop_option(formats::dataset_meta& meta, std::string_view name);

/// The option of P.meta that says how many tokens a dataset may have.
inline constexpr const char* max_tokens_option = "--max-tokens";
/// The option of P.meta that says what duplicates were dropped by.
inline constexpr const char* drop_duplicates_option = "--drop-duplicates";
/// The option of P.meta that says where a run ended because of `--max-tokens`.
inline constexpr const char* stopped_before = "stopped_before";
/// The place of a record, as P.meta says where a run ended: "byte 7 of a.jsonl" or "row 7 of
/// a.parquet".
std::string stop_text(bool has_rows, std::uint64_t offset, const std::string& path);
/// The place of the first record that `--max-tokens` left out, or null. Belongs to `meta`.
const std::string* stop_of(const formats::dataset_meta& meta);
/// Removes that place.
void drop_stop(formats::dataset_meta& meta);
/// The value of `--max-tokens`, or null. Belongs to `meta`.
const std::string* most_tokens_of(const formats::dataset_meta& meta);

/// Whether the run that wrote `meta` ended within one of its inputs, because of `--max-tokens`.
bool was_cut_within(const formats::dataset_meta& meta, const formats::input_extent& input);

}  // namespace millrace::preprocess

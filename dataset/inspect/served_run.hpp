// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/where.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "command_line.hpp"
#include "run_flags.hpp"

/// What a run serves: its samples, the flags that select some of them, and how they are printed.
namespace millrace::inspect {

/// The sampler of a run, which applies the passes and edits of the run.
struct served_run {
  dataset::sampler ranks;
  std::int64_t end = 0;  ///< number of served samples to list
};

/// @param help  help text of the verb
/// @throws usage_error  the run with edits has no end
/// @throws config_error, io_error, format_error  as `sampler` and `edited_positions`
served_run served_run_of(const run_configuration& run, const std::string& help);

/// The slots that `--step` or `--iteration`, `--rank` and `--slot` select.
struct slot_question {
  std::int64_t step;
  std::optional<std::int64_t> rank;  ///< nullopt: all ranks
  std::optional<std::int64_t> slot;  ///< nullopt: all slots of a rank

  bool is_one() const { return rank && slot; }
};

void add_slot_flags(boost::program_options::options_description& own);

/// Returns the slots that `--step` or `--iteration` asks for, with `--rank` and `--slot` if given.
/// Returns nullopt if none of these flags is given.
/// @throws usage_error  the flags contradict each other
std::optional<slot_question> slot_question_of(const command_line& line, const std::string& help);

/// The slots of the step that are served, sorted by rank and slot. If some slots are not served,
/// prints a message on stderr.
///
/// @throws config_error  the step, rank or slot does not exist, or none of the slots is served
std::vector<dataset::slot_place> served_slots(const slot_question& q,
                                              const dataset::sampler& ranks);

/// "step 3, rank 1, slot 0".
std::string at_text(const dataset::slot_place& at);

/// "; from in.jsonl, line 4, bytes 30 to 45", or an empty text if the place is unknown.
std::string origin_text(const std::optional<dataset::record_place>& from);

/// If `wanted`, returns a text with the sample's position in the run without edits, because edits
/// refer to these positions. Otherwise returns an empty text.
std::string unedited_text(bool wanted, std::int64_t position);

/// The line about a sample as a whole.
/// @param prefix  path of its dataset
std::string served_line(const std::string& prefix, const dataset::served_sample& served,
                        bool with_unedited);

/// The line about a piece of a sample.
std::string piece_line(const dataset::run_places& places, std::int64_t source,
                       const dataset::document_piece& piece);

/// Writes the member "source", which is null if the place is unknown.
void write_source(formats::json_writer& json, const std::optional<dataset::record_place>& from);

/// Writes the member "sample_without_edits" if `wanted`.
void write_unedited(formats::json_writer& json, bool wanted, std::int64_t position);

/// Writes the members that describe a sample: from "step" to the list "documents".
void write_served(formats::json_writer& json, const dataset::run_places& places,
                  const std::string& prefix, const dataset::served_sample& served,
                  bool with_unedited);

}  // namespace millrace::inspect

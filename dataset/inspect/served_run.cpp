// SPDX-License-Identifier: Apache-2.0
#include "served_run.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/command/text.hpp>
#include <millrace/dataset/detail/run/edited_stream.hpp>

#include "command_line.hpp"

namespace millrace::inspect {

served_run served_run_of(const run_configuration& run, const std::string& help) {
  const std::int64_t end = run.order->end();
  std::shared_ptr<const dataset::edited_stream> stream;
  if (run.has_state && run.sampler.type == dataset::sampler_type::single) {
    if (!run.has_end && end > run.samples) {
      throw misuse("--train-samples is required: edits shift all samples up to the end of the run",
                   help);
    }
    const dataset::batch_steps steps(run.sampler.samples_of_step(), run.sampler.rampup);
    stream = std::make_shared<const dataset::edited_stream>(
        dataset::edited_positions(*run.order, run.edits, steps));
  }
  // A full validation of a run without an end covers its first epoch.
  const bool all_once = run.sampler.type == dataset::sampler_type::full_validation;
  dataset::sampler ranks(all_once ? run.samples : end, run.sampler, stream);
  std::int64_t listed = ranks.end_sample();
  if (run.sampler.type == dataset::sampler_type::single && run.has_end) {
    listed = std::min(listed, stream ? stream->served_before(run.samples) : run.samples);
  } else if (!all_once) {
    listed = std::min(listed, run.sampler.consumed_samples + run.samples);
  }
  return {std::move(ranks), listed};
}

void add_slot_flags(boost::program_options::options_description& own) {
  auto add = own.add_options();
  for (const char* flag : {"step", "iteration", "rank", "slot"}) {
    add(flag, boost::program_options::value<std::int64_t>());
  }
}

std::optional<slot_question> slot_question_of(const command_line& line, const std::string& help) {
  const auto step = line.find<std::int64_t>("step");
  const auto iteration = count_of(line, "iteration", 1, help);
  const auto rank = line.find<std::int64_t>("rank");
  const auto slot = line.find<std::int64_t>("slot");
  if (step && iteration) {
    throw misuse("--step and --iteration exclude each other; iteration N is step N - 1", help);
  }
  if (step) return slot_question{*step, rank, slot};
  if (iteration) return slot_question{*iteration - 1, rank, slot};
  if (rank || slot) throw misuse("--rank and --slot require --step or --iteration", help);
  return std::nullopt;
}

std::vector<dataset::slot_place> served_slots(const slot_question& q,
                                              const dataset::sampler& ranks) {
  const dataset::slot_place first{q.step, q.rank.value_or(0), q.slot.value_or(0)};
  if (q.is_one()) return {first};
  std::vector<dataset::slot_place> found;
  if (0 <= q.step && q.step <= ranks.last_step()) {
    const std::int64_t end = std::min(ranks.first_sample_of(q.step + 1), ranks.end_sample());
    std::int64_t sample = std::max(ranks.first_sample_of(q.step), ranks.first_sample());
    for (; sample < end; ++sample) {
      const dataset::slot_place place = ranks.slot_of(sample);
      if (q.rank.value_or(place.rank) != place.rank) continue;
      if (q.slot.value_or(place.slot) != place.slot) continue;
      found.push_back(place);
    }
  }
  if (found.empty()) {
    (void)ranks.sample_of(first);  // throws with the reason
    return {first};
  }
  std::ranges::sort(found, {}, [](const dataset::slot_place& place) {
    return std::pair(place.rank, place.slot);
  });
  const std::int64_t all =
      (q.rank ? 1 : ranks.options().world_size) * (q.slot ? 1 : ranks.slots(q.step));
  if (std::ssize(found) < all) {
    command::tell(fmt::format("{}: the run serves only {} of these {} of step {}\n", program_name,
                              grouped(std::ssize(found)), grouped(all, "slot"), q.step));
  }
  return found;
}

std::string at_text(const dataset::slot_place& at) {
  return fmt::format("step {}, rank {}, slot {}", at.step, at.rank, at.slot);
}

std::string origin_text(const std::optional<dataset::record_place>& from) {
  if (!from) return "";
  if (from->unit == formats::src_unit::rows) {
    return fmt::format("; from {}, row {}", command::one_line(from->input), from->begin);
  }
  return fmt::format("; from {}, line {}, bytes {} to {}", command::one_line(from->input),
                     from->line, from->begin, from->end);
}

std::string unedited_text(bool wanted, std::int64_t position) {
  return wanted ? fmt::format(" ({} without edits)", position) : "";
}

std::string served_line(const std::string& prefix, const dataset::served_sample& served,
                        bool with_unedited) {
  return fmt::format("{}: sample {} of the run{}, sample {} of {}\n", at_text(served.slot),
                     served.served, unedited_text(with_unedited, served.position), served.k,
                     prefix);
}

std::string piece_line(const dataset::run_places& places, std::int64_t source,
                       const dataset::document_piece& piece) {
  const dataset::piece& p = piece.tokens;
  return fmt::format("token {}: {} of document {}, sequence {} from token {} on{}\n", piece.at,
                     grouped(p.tokens, "token"), piece.document, p.sequence, p.first,
                     origin_text(places.documents(source)->read_from(piece.document)));
}

void write_source(formats::json_writer& json, const std::optional<dataset::record_place>& from) {
  json.key("source");
  if (!from) {
    json.null();
    return;
  }
  json.open('{').key("input").value(from->input);
  if (from->unit == formats::src_unit::rows) {
    json.key("row").value(from->begin).close('}');
    return;
  }
  json.key("line").value(from->line);
  json.key("begin").value(from->begin).key("end").value(from->end).close('}');
}

void write_unedited(formats::json_writer& json, bool wanted, std::int64_t position) {
  if (wanted) json.key("sample_without_edits").value(position);
}

void write_served(formats::json_writer& json, const dataset::run_places& places,
                  const std::string& prefix, const dataset::served_sample& served,
                  bool with_unedited) {
  json.key("step").value(served.slot.step).key("rank").value(served.slot.rank);
  json.key("slot").value(served.slot.slot).key("sample").value(served.served);
  write_unedited(json, with_unedited, served.position);
  json.key("prefix").value(prefix).key("sample_of_prefix").value(served.k);
  json.key("padding").value(served.padding).key("documents").open('[');
  for (const dataset::document_piece& each : served.pieces) {
    const dataset::piece& p = each.tokens;
    json.open('{').key("at").value(each.at).key("document").value(each.document);
    json.key("sequence").value(p.sequence).key("first").value(p.first);
    json.key("tokens").value(p.tokens);
    write_source(json, places.documents(served.sample.source)->read_from(each.document));
    json.close('}');
  }
  json.close(']');
}

}  // namespace millrace::inspect

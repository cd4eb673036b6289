// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/command/terminal.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/where.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/options.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "command_line.hpp"
#include "dataset_tokenizer.hpp"
#include "inspect.hpp"
#include "meta.hpp"
#include "run_flags.hpp"
#include "served_run.hpp"
#include "show_tokens.hpp"
#include "state_flag.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

/// A row to show, and its place in its micro-batch.
struct shown_row {
  dataset::served_sample served;
  std::int64_t micro_batch = 0;
  std::int64_t row = 0;
};

/// The rows of one micro-batch, and the micro-batch as the loader serves it.
struct shown_batch {
  std::span<const shown_row> rows;
  loader::batch served;
};

/// The facts about the datasets of the shown rows.
class shown_sources {
 public:
  shown_sources(const command_line& line, const dataset::run& order,
                std::span<const shown_row> rows)
      : order_(order), tokenizers_(line, show_help) {
    for (const shown_row& each : rows) {
      const std::int64_t source = each.served.sample.source;
      if (found_.contains(source)) continue;
      const dataset::indexed_dataset data(order.prefix(source));
      facts& of = found_[source];
      of.tokenizer = tokenizers_.find(data);
      if (const auto meta = find_meta(data)) {
        of.eod = meta->tokenizer.eod;
      } else if (of.tokenizer) {
        of.eod = of.tokenizer->eod();
      }
    }
  }

  const tokenizer::tokenizer* tokenizer(std::int64_t source) const {
    return found_.at(source).tokenizer.get();
  }
  std::optional<std::int64_t> eod(std::int64_t source) const { return found_.at(source).eod; }
  /// The eod of all shown datasets; nullopt if one has none, or another one.
  std::optional<std::int64_t> common_eod() const {
    std::optional<std::int64_t> common;
    for (const auto& [source, unused] : found_) {
      const auto own = eod(source);
      if (!own || (common && *common != *own)) return std::nullopt;
      common = own;
    }
    return common;
  }
  std::string prefix(std::int64_t source) const { return order_.prefix(source).native(); }
  bool last_token_as_label() const { return order_.last_token_as_label(); }

 private:
  struct facts {
    std::shared_ptr<const tokenizer::tokenizer> tokenizer;
    std::optional<std::int64_t> eod;
  };

  const dataset::run& order_;
  dataset_tokenizers tokenizers_;
  std::map<std::int64_t, facts> found_;
};

loader::mask_alignment mask_alignment_of(const command_line& line) {
  const std::string said = line.find<std::string>("mask-alignment").value_or("label");
  if (said == "label") return loader::mask_alignment::label;
  if (said == "input") return loader::mask_alignment::input;
  if (said == "ignored") return loader::mask_alignment::ignored;
  throw misuse(fmt::format("--mask-alignment '{}': expected label, input or ignored", said),
               show_help);
}

loader::loader_options loader_options_of(const command_line& line, const run_configuration& run,
                                         const shown_sources& sources) {
  loader::loader_options options = loader_options_for(run);
  options.edits = run.edits;
  options.fields = {true, true, true, true, true};
  options.boundaries = true;
  options.masks = mask_alignment_of(line);
  dataset::field_options& rules = options.field_rules;
  rules.reset_position_ids = line.values["reset-position-ids"].as<bool>();
  rules.eod_mask_loss = line.values["eod-mask-loss"].as<bool>();
  rules.pad = count_of(line, "pad-id", 0, show_help).value_or(rules.pad);
  const auto eod = count_of(line, "eod-id", 0, show_help);
  if (!rules.reset_position_ids && !rules.eod_mask_loss) {
    if (eod) {
      throw misuse("--eod-id requires --eod-mask-loss or --reset-position-ids", show_help);
    }
    return options;
  }
  const auto known = eod ? eod : sources.common_eod();
  if (!known) {
    throw misuse(
        "--eod-id is required: the end-of-document id, because no PREFIX.meta or tokenizer names "
        "one id for all datasets",
        show_help);
  }
  rules.eod = *known;
  return options;
}

/// The slots that the flags ask for.
std::vector<dataset::slot_place> asked_slots(const command_line& line,
                                             const dataset::sampler& ranks) {
  const auto slots = slot_question_of(line, show_help);
  const auto sample = count_of(line, "sample", 0, show_help);
  if (!sample) return served_slots(*slots, ranks);
  if (slots) {
    throw misuse("--sample and --step or --iteration exclude each other; pass one of them",
                 show_help);
  }
  if (*sample < ranks.first_sample() || *sample >= ranks.end_sample()) {
    throw config_error(fmt::format("--sample {}: expected one of the served samples, {} to {}",
                                   *sample, ranks.first_sample(), ranks.end_sample() - 1));
  }
  return {ranks.slot_of(*sample)};
}

/// Reads the micro-batches of the rows. Rows of one micro-batch must be adjacent.
std::vector<shown_batch> read_batches(std::span<const shown_row> rows,
                                      const dataset::sampler& ranks, loader::batch_reader& reader) {
  std::vector<shown_batch> batches;
  std::vector<std::int64_t> positions;
  for (std::size_t first = 0, last = 0; first < rows.size(); first = last) {
    const shown_row& row = rows[first];
    while (last < rows.size() && rows[last].micro_batch == row.micro_batch &&
           rows[last].served.slot.rank == row.served.slot.rank) {
      ++last;
    }
    const std::int64_t turn = (row.served.served - ranks.first_sample()) / ranks.options().width();
    const dataset::batch_number number = ranks.batch(turn, row.served.slot.rank, positions);
    batches.push_back({rows.subspan(first, last - first), reader.read(positions, number)});
  }
  return batches;
}

/// Row `row` of an array [rows, seq_len] of a batch, cut to the window.
template <class T>
std::span<const T> cut(std::span<const T> array, const loader::batch& batch, std::int64_t row,
                       const token_window& window) {
  const auto first = static_cast<std::size_t>(row * batch.layout().seq_len() + window.first);
  return array.subspan(first, static_cast<std::size_t>(window.size()));
}

/// The row's boundaries, without repeated ones.
std::vector<std::int32_t> boundaries_of(const loader::batch& batch, std::int64_t row) {
  const auto at = static_cast<std::size_t>(row);
  const auto begin = static_cast<std::size_t>(batch.boundary_begin()[at]);
  const auto end = static_cast<std::size_t>(batch.boundary_begin()[at + 1]);
  const auto all = batch.boundaries().subspan(begin, end - begin);
  std::vector<std::int32_t> boundaries(all.begin(), all.end());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  return boundaries;
}

template <class Numbers>
void write_list(formats::json_writer& json, const char* key, const Numbers& numbers) {
  json.key(key).open('[');
  for (const auto each : numbers) json.value(static_cast<std::int64_t>(each));
  json.close(']');
}

/// One row of a batch: as text and as JSON.
class row_printer {
 public:
  row_printer(const shown_row& row, const loader::batch& batch, const show_options& options,
              const shown_sources& sources, const dataset::run_places& places)
      : row_(row),
        source_(row.served.sample.source),
        seq_len_(batch.layout().seq_len()),
        window_(options.window_of(seq_len_, "the sample")),
        options_(options),
        sources_(sources),
        places_(places),
        all_tokens_(cut(batch.tokens(), batch, row.row, {0, seq_len_, 0, 0})),
        tokens_(cut(batch.tokens(), batch, row.row, window_)),
        labels_(cut(batch.labels(), batch, row.row, window_)),
        loss_(cut(batch.loss_mask(), batch, row.row, window_)),
        positions_(cut(batch.position_ids(), batch, row.row, window_)),
        boundaries_(boundaries_of(batch, row.row)) {}

  std::string text(bool with_unedited) const {
    std::string out = served_line(sources_.prefix(source_), row_.served, with_unedited);
    const std::string part = window_text(window_, seq_len_);
    if (!options_.is_start() && !part.empty()) out += part + '\n';
    out += options_.is_aligned() ? aligned() : piece_by_piece();
    if (row_.served.padding > 0) out += grouped(row_.served.padding, "token") + " of padding\n";
    return out + summary();
  }

  /// Writes the row as an object.
  void write(formats::json_writer& json, bool with_unedited) const {
    json.open('{');
    write_served(json, places_, sources_.prefix(source_), row_.served, with_unedited);
    json.key("first_token").value(window_.first).key("tokens_shown").value(window_.size());
    write_list(json, "tokens", tokens_);
    write_list(json, "labels", labels_);
    write_list(json, "loss_mask", loss_);
    write_list(json, "position_ids", positions_);
    write_list(json, "boundaries", boundaries_);
    if (sources_.tokenizer(source_) != nullptr) write_text(json);
    json.close('}');
  }

 private:
  void write_text(formats::json_writer& json) const {
    std::string whole;
    for (const dataset::document_piece& piece : row_.served.pieces) {
      const auto [begin, end] = shown_of(piece);
      whole += sources_.tokenizer(source_)->decode(ids(begin, end));
    }
    json.key("text").value(whole);
    if (!options_.is_aligned()) return;
    json.key("texts").open('[');
    for (const std::optional<std::string>& each : texts()) {
      if (each) {
        json.value(*each);
      } else {
        json.null();
      }
    }
    json.close(']');
  }

  /// The shown tokens of a piece: offsets in the row.
  std::pair<std::int64_t, std::int64_t> shown_of(const dataset::document_piece& piece) const {
    const std::int64_t end = std::min(piece.at + piece.inputs, window_.last);
    const std::int64_t begin = std::max(piece.at, window_.first);
    return {begin, std::max(begin, end)};
  }

  /// True for a piece that has tokens in the window, or begins there without any.
  bool is_shown(const dataset::document_piece& piece) const {
    const auto [begin, end] = shown_of(piece);
    const bool is_label = is_only_label(piece) && window_.last == seq_len_;
    const bool is_empty = piece.tokens.tokens == 0;
    return begin < end || is_label ||
           (is_empty && window_.first <= piece.at && piece.at <= window_.last);
  }

  static bool is_only_label(const dataset::document_piece& piece) {
    return piece.inputs == 0 && piece.tokens.tokens > 0;
  }

  std::string line_of(const dataset::document_piece& piece) const {
    std::string line = piece_line(places_, source_, piece);
    line.pop_back();  // the line end
    if (is_only_label(piece)) return line + " (only the last label)";
    const bool has_label = piece.inputs < piece.tokens.tokens && sources_.last_token_as_label();
    return has_label ? line + " (the last is only a label)" : line;
  }

  std::span<const std::int64_t> ids(std::int64_t begin, std::int64_t end) const {
    if (begin == end) return {};
    return tokens_.subspan(static_cast<std::size_t>(begin - window_.first),
                           static_cast<std::size_t>(end - begin));
  }

  std::string piece_by_piece() const {
    const tokenizer::tokenizer* const with = sources_.tokenizer(source_);
    const bool colors = command::stdout_has_colors();
    std::string out;
    for (const dataset::document_piece& piece : row_.served.pieces) {
      if (!is_shown(piece)) continue;
      out += command::inked(command::ink::border, line_of(piece), colors) + '\n';
      const auto [begin, end] = shown_of(piece);
      if (begin >= end) continue;
      if (options_.has_ids()) {
        out += begin > piece.at ? "ids: ..." : "ids:";
        for (const std::int64_t id : ids(begin, end)) out += fmt::format(" {}", id);
        out += end < piece.at + piece.inputs ? " ...\n" : "\n";
      }
      if (options_.has_text() && with != nullptr) {
        out += fmt::format("text:\n{}\n", shown_text(*with, ids(begin, end)));
      }
    }
    return out;
  }

  /// The text of each shown token. Documents are decoded separately, because the text of a document
  /// does not depend on the one before it.
  std::vector<std::optional<std::string>> texts() const {
    std::vector<std::optional<std::string>> all(tokens_.size());
    const tokenizer::tokenizer* const with = sources_.tokenizer(source_);
    if (with == nullptr) return all;
    for (const dataset::document_piece& piece : row_.served.pieces) {
      const auto [begin, end] = shown_of(piece);
      if (begin >= end) continue;
      const auto whole = all_tokens_.subspan(static_cast<std::size_t>(piece.at),
                                             static_cast<std::size_t>(piece.inputs));
      auto at = static_cast<std::size_t>(begin - window_.first);
      for (std::string& each : texts_of(*with, whole, begin - piece.at, end - piece.at)) {
        all[at++] = std::move(each);
      }
    }
    return all;
  }

  std::string aligned() const {
    const auto texts = this->texts();
    const auto eod = sources_.eod(source_);
    std::vector<bool> is_real(tokens_.size());
    for (const dataset::document_piece& piece : row_.served.pieces) {
      const auto [begin, end] = shown_of(piece);
      for (std::int64_t at = begin; at < end; ++at) {
        is_real[static_cast<std::size_t>(at - window_.first)] = true;
      }
    }
    token_table table(window_);
    auto piece = row_.served.pieces.begin();
    const auto add_pieces_until = [&](std::int64_t at) {
      for (; piece != row_.served.pieces.end() && piece->at <= at; ++piece) {
        if (is_shown(*piece)) table.border(line_of(*piece));
      }
    };
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::int64_t at = window_.first + static_cast<std::int64_t>(i);
      add_pieces_until(at);
      const char* const remark = !is_real[i]                 ? "(padding)"
                                 : eod && tokens_[i] == *eod ? "(eod)"
                                                             : "";
      table.token(at, std::to_string(tokens_[i]), texts[i],
                  token_fields{labels_[i], loss_[i] != 0, positions_[i]}, remark);
    }
    if (window_.last == seq_len_) add_pieces_until(seq_len_);
    return table.text(command::stdout_has_colors());
  }

  /// What the ids do not show: loss mask, positions and boundaries.
  std::string summary() const {
    std::string out;
    if (!options_.is_aligned()) {
      std::vector<std::int64_t> lossless;
      std::vector<std::int64_t> restarts;
      for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const std::int64_t at = window_.first + static_cast<std::int64_t>(i);
        if (loss_[i] == 0) lossless.push_back(at);
        if (positions_[i] == 0 && at > 0) restarts.push_back(at);
      }
      out += "loss_mask 0 at: " + (lossless.empty() ? "none" : ranges_text(lossless)) + '\n';
      if (!restarts.empty()) out += "position_ids restart at: " + ranges_text(restarts) + '\n';
    }
    out += "cu_seqlens:";
    for (const std::int32_t each : boundaries_) out += fmt::format(" {}", each);
    return out + '\n';
  }

  const shown_row& row_;
  std::int64_t source_;
  std::int64_t seq_len_;
  token_window window_;
  const show_options& options_;
  const shown_sources& sources_;
  const dataset::run_places& places_;
  std::span<const std::int64_t> all_tokens_;  // of the whole row
  std::span<const std::int64_t> tokens_;      // those in the window, as the fields below
  std::span<const std::int64_t> labels_;
  std::span<const float> loss_;
  std::span<const std::int64_t> positions_;
  std::vector<std::int32_t> boundaries_;
};

std::string as_json(std::span<const shown_batch> batches, const show_options& options,
                    const shown_sources& sources, const dataset::run_places& places,
                    bool with_unedited) {
  formats::json_writer json;
  json.open('{').key("seq_length").value(batches.front().served.layout().seq_len());
  json.key("batches").open('[');
  for (const auto& [rows, batch] : batches) {
    json.open('{').key("step").value(batch.step());
    json.key("rank").value(rows.front().served.slot.rank);
    json.key("micro_batch").value(batch.micro_batch());
    json.key("micro_batches").value(batch.micro_batches());
    json.key("first_sample").value(batch.first_sample());
    write_list(json, "cu_seqlens", batch.cu_seqlens());
    json.key("max_seqlen").value(batch.max_seqlen()).key("rows").open('[');
    for (const shown_row& row : rows) {
      row_printer(row, batch, options, sources, places).write(json, with_unedited);
    }
    json.close(']').close('}');
  }
  return json.close(']').close('}').text() + '\n';
}

}  // namespace

void add_batch_flags(po::options_description& own) {
  add_run_flags(own);
  add_slot_flags(own);
  add_state_flag(own);
  auto add = own.add_options();
  for (const char* flag : {"sample", "eod-id", "pad-id"}) add(flag, po::value<std::int64_t>());
  for (const char* flag : {"eod-mask-loss", "reset-position-ids"}) add(flag, po::bool_switch());
  add("mask-alignment", po::value<std::string>());
}

int show_batches(const command_line& line) {
  const show_options options(line);
  const run_configuration run = run_configuration_of(line, show_help);
  if (const std::string assumed = assumptions_of(line, run, run.order->end() > run.samples);
      !assumed.empty()) {
    command::tell(fmt::format("{}: assumed {}\n", program_name, assumed));
  }
  const served_run served = served_run_of(run, show_help);
  const dataset::run_places places(*run.order, served.ranks);
  std::vector<shown_row> rows;
  for (const dataset::slot_place& slot : asked_slots(line, served.ranks)) {
    const std::int64_t size = run.sampler.batch_size;
    rows.push_back({places.at(slot), slot.slot / size, slot.slot % size});
  }
  const shown_sources sources(line, *run.order, rows);
  loader::batch_reader reader(run.order, loader_options_of(line, run, sources));
  const auto batches = read_batches(rows, served.ranks, reader);

  const bool with_unedited = run.has_state && run.sampler.type == dataset::sampler_type::single;
  if (line.json) {
    command::answer(as_json(batches, options, sources, places, with_unedited));
    return command::exit_done;
  }
  std::string text;
  for (const auto& [batch_rows, batch] : batches) {
    for (const shown_row& row : batch_rows) {
      if (!text.empty()) text += '\n';
      text += row_printer(row, batch, options, sources, places).text(with_unedited);
    }
  }
  command::answer(text);
  const std::int64_t seq_len = run.order->seq_len();
  const token_window window = options.window_of(seq_len, "the sample");
  if (options.is_start() && window.last < seq_len) {
    command::tell(
        fmt::format("{}: showed {} of the {} tokens of each sample; --all shows the rest\n",
                    program_name, grouped(window.size()), grouped(seq_len)));
  }
  return command::exit_done;
}

}  // namespace millrace::inspect

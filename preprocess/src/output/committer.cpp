// SPDX-License-Identifier: Apache-2.0
#include "output/committer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <millrace/formats/detail/crc32c.hpp>

#include "input/line_ends.hpp"
#include "output/bad_record_line.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {
namespace {

// Most bytes of a line that its record may lack: a byte order mark (3 bytes) and the first byte of
// the line end.
constexpr std::uint64_t most_around_line = 4;

/// Writes the ids of a giant record to one dataset per key, as the ids arrive.
class id_writer final : public id_sink {
 public:
  /// @param writers  one writer per key
  /// @param tokens   number of tokens per key so far
  /// @param most     most tokens per key. After it, ids are only counted, because the record may
  ///                 still turn out to be bad
  id_writer(std::vector<dataset_writer*> writers, formats::dtype type,
            std::vector<std::int64_t> tokens, std::optional<std::int64_t> most)
      : type_(type), writers_(std::move(writers)), tokens_(std::move(tokens)), most_(most) {}

  /// False if a key has too many tokens. Then not all ids were written.
  bool fits() const noexcept { return fits_; }
  const std::vector<std::int64_t>& tokens() const noexcept { return tokens_; }
  /// The digests of the record's texts: one, or none if the encoder made none.
  std::span<const text_digest> digests() const noexcept { return digests_; }

  void append(std::size_t key, std::span<const std::int32_t> ids) override {
    tokens_[key] += std::ssize(ids);
    fits_ = fits_ && (!most_ || tokens_[key] <= *most_);
    if (!fits_) return;
    if (type_ == formats::dtype::int32) return writers_[key]->append(std::as_bytes(ids), {}, {});
    narrow_.assign(ids.begin(), ids.end());
    writers_[key]->append(std::as_bytes(std::span(narrow_)), {}, {});
  }
  void end_sequence(std::size_t key, std::int32_t length) override {
    writers_[key]->append({}, std::span(&length, 1), {});
  }
  void take_digest(const text_digest& digest) override { digests_.push_back(digest); }

 private:
  formats::dtype type_;
  std::vector<dataset_writer*> writers_;
  std::vector<std::int64_t> tokens_;
  std::optional<std::int64_t> most_;
  bool fits_ = true;
  std::vector<text_digest> digests_;
  std::vector<std::uint16_t> narrow_;  // a member only to reuse its memory
};

}  // namespace

committer::committer(std::span<const input_file> inputs, const read_range& range,
                     const commit_options& options, const run_progress* from)
    : inputs_(inputs),
      options_(options),
      outputs_(options_.prefixes, options_.dataset, options_.partitions,
               from != nullptr ? &from->outputs : nullptr),
      begun_(from != nullptr || range.at_line) {
  if (from != nullptr) {
    state_ = *from;  // `damaged` stays set until note_all_read()
    untouched_ = false;
  } else {
    state_.next = range.begin;
    state_.inputs.resize(range.begin.input + 1);
    if (begun_) state_.inputs.back().begin = range.begin.offset;
  }
  outputs_.save(state_.outputs);
  if (from == nullptr) state_.start.outputs = state_.outputs;
  const auto& [wholes, parts] = state_.outputs;
  tokens_.resize(wholes.size());
  for (std::size_t key = 0; key < wholes.size(); ++key) {
    std::uint64_t bytes = parts.empty() ? wholes[key].bin_bytes : 0;
    for (std::size_t i = 0; i < parts.size() / wholes.size(); ++i) {
      bytes += parts[key * options_.partitions + i].bin_bytes;
    }
    tokens_[key] = token_count(bytes);
  }
}

std::int64_t committer::token_count(std::uint64_t bytes) const noexcept {
  return static_cast<std::int64_t>(bytes / formats::size_bytes(options_.dataset.type));
}

std::vector<std::string> committer::commit(encoded_block& block) {
  std::optional<text_place> stop;
  if (options_.most_tokens) {
    const std::size_t fit = documents_that_fit(block);
    if (fit < block.places.size()) {
      stop = {block.input, block.text_offset + block.places[fit].begin};
      cut_before(block, fit, formats::size_bytes(options_.dataset.type));
    }
  }
  auto notes = commit_whole(block);
  state_.stopped_before = stop;  // only now: if the block failed, the next run must read it again
  return notes;
}

std::vector<std::string> committer::commit_whole(const encoded_block& block) {
  if (block.begin == block.end) return {};
  enter(block.input, block.begin);
  refuse(block);
  std::vector<std::string> notes;
  for (const block_fault& fault : block.faults) {
    if (notes_ + notes.size() == most_notes) break;
    notes.push_back(describe(block, fault));
  }
  append_places(block);
  append_cuts(block);
  append_bad(block);
  outputs_.append(block, state_.counts.lines);
  for (std::size_t key = 0; key < tokens_.size(); ++key) {
    tokens_[key] += token_count(block.columns[key].ids_bytes);
  }
  advance(block.end, block.text_bytes, block.crc32c, block.counts);
  limit(notes);
  return notes;
}

// Returns how many documents of `block` leave each dataset within its budget.
std::size_t committer::documents_that_fit(const encoded_block& block) const {
  std::size_t fit = block.places.size();
  for (std::size_t key = 0; key < tokens_.size(); ++key) {
    const encoded_column& column = block.columns[key];
    std::int64_t tokens = tokens_[key];
    if (tokens + token_count(column.ids_bytes) <= *options_.most_tokens) continue;
    std::size_t sequence = 0;
    for (std::size_t document = 0; document < fit; ++document) {
      for (; std::cmp_less(sequence, column.document_ends[document]); ++sequence) {
        tokens += column.lengths[sequence];
      }
      if (tokens > *options_.most_tokens) fit = document;
    }
  }
  return fit;
}

std::optional<double> committer::most_growth() const noexcept {
  const std::int64_t most = std::ranges::max(tokens_);
  if (!options_.most_tokens || most == 0) return std::nullopt;
  return static_cast<double>(*options_.most_tokens) / static_cast<double>(most) - 1;
}

std::vector<std::string> committer::commit(std::size_t input, const giant_line& line,
                                           const giant_encoder& encode) {
  std::optional<run_progress> outside;  // the state if this line turns out to be behind the end
  if (options_.most_tokens) outside = state_;
  const bool had_begun = begun_;
  enter(input, line.offset_bytes);
  // Build a block for the functions below. They treat a bad giant line as a block with one bad
  // record.
  encoded_block block;
  block.input = input;
  block.text_offset = line.offset_bytes + line.mark_bytes;
  record_counts counts;
  if (line.is_blank) {
    counts.blank_lines = 1;
  } else if (options_.sampler && !options_.sampler->takes(input, block.text_offset)) {
    counts.not_sampled = 1;
  } else {
    const std::int64_t number = state_.counts.lines;
    id_writer ids(outputs_.writers_of_line(number), options_.dataset.type, tokens_,
                  options_.most_tokens);
    std::optional<record_fault> fault;
    try {
      fault = encode(ids, counts);
    } catch (const line_abandoned&) {
      outputs_.go_back_line(number, state_.outputs);  // do not sync dropped gigabytes
      throw;
    }
    if (fault) {
      outputs_.go_back_line(number, state_.outputs);
      block.faults.push_back({*std::move(fault), {}});
    } else if (ids.fits()) {
      if (options_.dataset.cut_keys != 0) {
        outputs_.append_cut(point_before(input, block.text_offset));
      }
      tokens_ = ids.tokens();
      append_document(input, line, ids.digests());
    } else {
      outputs_.go_back_line(number, state_.outputs);
      state_ = *std::move(outside);
      begun_ = had_begun;
      state_.stopped_before = {input, block.text_offset};
      return {};
    }
  }
  counts.lines = 1;
  refuse(block);
  std::vector<std::string> notes;
  if (!block.faults.empty() && notes_ < most_notes) {
    notes.push_back(describe(block, block.faults.front()));
  }
  append_bad(block, line.end - line.begin);
  advance(line.offset_bytes + line.size_bytes, line.size_bytes, line.crc32c, counts);
  limit(notes);
  return notes;
}

void committer::append_document(std::size_t input, const giant_line& line,
                                std::span<const text_digest> digests) {
  const std::int64_t end_of_document = 0;  // all sequences of the document are already written
  const std::uint64_t begin = line.offset_bytes + line.mark_bytes;
  const formats::source_place place{number_of(input), state_.inputs.back().lines + 1, begin,
                                    begin + (line.end - line.begin)};
  for (dataset_writer* writer : outputs_.writers_of_line(state_.counts.lines)) {
    writer->append_digests(digests);
    writer->append({}, {}, std::span(&end_of_document, 1));
    writer->append_places(std::span(&place, 1));
  }
}

// Advances to the input of the next block or giant line, which must begin where the previous block
// or line ended.
void committer::enter(std::size_t input, std::uint64_t begin) {
  if (input != state_.next.input) {
    state_.start.counts = state_.counts;
    state_.start.outputs = state_.outputs;
    state_.inputs.resize(input + 1);
    state_.next = {input, 0};
    begun_ = true;
  }
  if (!std::exchange(begun_, true)) {
    state_.next.offset = begin;
    state_.inputs.back().begin = begin;
  }
  if (begin != state_.next.offset) {
    throw format_error(display_path(inputs_[input]), state_.next.offset,
                       fmt::format("the input changed while it was being read: expected a line at "
                                   "this {}, found its start at {}",
                                   inputs_[input].has_rows() ? "row" : "byte", begin));
  }
}

// Throws if the bad records of this block must end the run. Called before any part of the block is
// written.
void committer::refuse(const encoded_block& block) {
  if (block.faults.empty()) return;
  if (first_fault_.empty()) first_fault_ = describe_with_advice(block, block.faults.front());
  if (options_.on_bad_record == bad_record_policy::fail) {
    throw bad_record_error(first_fault_, !block.faults.front().fault.advice.empty());
  }
  if (!options_.most_bad_records) return;
  const std::int64_t room =
      std::max<std::int64_t>(0, *options_.most_bad_records - state_.counts.bad_record_total());
  if (std::cmp_less_equal(block.faults.size(), room)) return;
  throw bad_record_error(fmt::format("{}; this exceeds --max-bad-records {}",
                                     describe(block, block.faults[static_cast<std::size_t>(room)]),
                                     *options_.most_bad_records));
}

void committer::append_places(const encoded_block& block) {
  if (!options_.dataset.provenance) return;
  places_.clear();
  const std::int64_t line = state_.inputs.back().lines + 1;
  for (const record_range& place : block.places) {
    const std::uint64_t begin = block.text_offset + place.begin;
    places_.push_back({number_of(block.input), line + place.line, begin, begin + place.size});
  }
  outputs_.append_places(block, state_.counts.lines, places_);
}

// Returns what the run has read and written so far.
//
// @param begin  place of the next record in `input`
cut_point committer::point_before(std::size_t input, std::uint64_t begin) const {
  const input_total& total = state_.inputs.back();
  return {.counts = state_.counts,
          .input = number_of(input),
          .begin = begin,
          .input_bytes = total.text_bytes,
          .input_lines = static_cast<std::uint64_t>(total.lines),
          .input_crc32c = total.crc32c,
          .tokens = tokens_};
}

void committer::append_cuts(const encoded_block& block) {
  if (options_.dataset.cut_keys == 0) return;
  const cut_point before = point_before(block.input, 0);
  cut_point point = before;
  std::vector<std::size_t> sequences(tokens_.size());
  for (std::size_t document = 0; document < block.places.size(); ++document) {
    const document_mark& mark = block.marks[document];
    const record_range& place = block.places[document];
    point.counts = before.counts;
    point.counts += mark.counts;
    point.begin = block.text_offset + place.begin;
    point.input_lines = before.input_lines + static_cast<std::uint64_t>(mark.counts.lines);
    // As cut_before(): a byte order mark alone is not read.
    const bool has_lines = place.begin != 0;
    point.input_bytes = before.input_bytes + (has_lines ? mark.text_bytes : 0);
    point.input_crc32c =
        has_lines ? formats::crc32c_combine(before.input_crc32c, mark.crc32c, mark.text_bytes)
                  : before.input_crc32c;
    outputs_.append_cut(point);
    for (std::size_t key = 0; key < tokens_.size(); ++key) {
      const encoded_column& column = block.columns[key];
      for (std::size_t& at = sequences[key]; std::cmp_less(at, column.document_ends[document]);
           ++at) {
        point.tokens[key] += column.lengths[at];
      }
    }
  }
}

void committer::end_cuts() {
  if (options_.dataset.cut_keys == 0) return;
  outputs_.append_cut(point_before(state_.next.input, state_.next.offset));
}

// Returns the number by which P.src refers to `input`. P.src lists every input whose start is in
// the run's share, or of which the run read any byte.
std::uint32_t committer::number_of(std::size_t input) const {
  const std::size_t first = options_.begin.input;
  const bool first_is_named =
      options_.begin.offset == 0 || input == first || state_.inputs[first].text_bytes != 0;
  return static_cast<std::uint32_t>(input - first - (first_is_named ? 0 : 1));
}

// Appends the bad records of `block` to P.bad. For a giant line, `giant_bytes` is the size of its
// record, whose bytes are not stored in P.bad. For a normal block, `giant_bytes` is 0.
void committer::append_bad(const encoded_block& block, std::uint64_t giant_bytes) {
  if (!options_.dataset.quarantine) return;
  const std::string file = display_path(inputs_[block.input]).string();
  for (const block_fault& fault : block.faults) {
    const std::uint64_t size = giant_bytes != 0 ? giant_bytes : fault.bytes;
    // The byte order mark and the line end count when a line is classified as giant, but not in
    // `size`. Adding `most_around_line` ensures that a giant line is always too long to be stored.
    const bool kept = size + most_around_line <= options_.most_raw_bytes;
    const std::string line =
        bad_record_line({.file = file,
                         .line = state_.inputs.back().lines + 1 + fault.place.line,
                         .has_rows = block.has_rows,
                         .begin = block.text_offset + fault.place.begin,
                         .size = size,
                         .fault = fault.fault,
                         .raw = kept ? &fault.raw : nullptr,
                         .from = state_.inputs.back().begin});
    outputs_.append_bad(line);
  }
}

void committer::advance(std::uint64_t end, std::uint64_t bytes, std::uint32_t crc32c,
                        const record_counts& counts) {
  input_total& total = state_.inputs.back();
  total.crc32c = formats::crc32c_combine(total.crc32c, crc32c, bytes);
  total.text_bytes += bytes;
  total.lines += counts.lines;
  state_.counts += counts;
  state_.next.offset = end;
  outputs_.save(state_.outputs);
  untouched_ = false;
}

// When the run first has more than `most_notes` bad records, adds a last note that says so. The
// notes do not depend on block boundaries.
void committer::limit(std::vector<std::string>& notes) {
  notes_ += notes.size();
  if (!told_of_more_ && state_.counts.bad_record_total() > std::int64_t{most_notes}) {
    notes.emplace_back("more bad records are counted, but not reported");
    told_of_more_ = true;
  }
}

bool committer::join_partitions(std::span<const formats::src_input> inputs, std::size_t chunk_bytes,
                                const std::function<bool()>& go_on) {
  return outputs_.join(inputs, chunk_bytes, [&] {
    outputs_.save(state_.outputs);
    return go_on();
  });
}

void committer::note_damage(const format_error& fault) {
  if (fault.path() == display_path(inputs_[state_.next.input])) state_.damaged = true;
}

void committer::note_all_read() noexcept {
  state_.damaged = false;
  state_.all_read = !is_full();
}

void committer::sync() {
  outputs_.sync();
}
void committer::keep() noexcept {
  outputs_.keep();
}
void committer::forget() noexcept {
  outputs_.forget();
}

std::string committer::describe(const encoded_block& block, const block_fault& fault) {
  if (block.has_rows) {
    return fmt::format("{}, row {}: {}", display_path(inputs_[block.input]).string(),
                       block.text_offset + fault.place.begin, fault.fault.what);
  }
  const auto line = line_of(block, fault);
  return fmt::format("{}{} (byte {}): {}", display_path(inputs_[block.input]).string(),
                     line ? fmt::format(":{}", *line) : "",
                     block.text_offset + fault.place.begin + fault.fault.offset_bytes,
                     fault.fault.what);
}

std::string committer::describe_with_advice(const encoded_block& block, const block_fault& fault) {
  const std::string& advice = fault.fault.advice;
  return describe(block, fault) + (advice.empty() ? "" : ". " + advice);
}

// Returns the line number of a fault in its file. If the run began inside a compressed file,
// returns nothing, because the number of lines before the beginning is unknown.
std::optional<std::int64_t> committer::line_of(const encoded_block& block,
                                               const block_fault& fault) {
  const input_total& total = state_.inputs.back();
  const std::int64_t line = total.lines + fault.place.line + 1;
  if (total.begin == 0) return line;
  if (!std::exchange(counted_, true)) {
    lines_before_ = lines_before(inputs_[block.input], total.begin);
  }
  if (!lines_before_) return std::nullopt;
  return *lines_before_ + line;
}

}  // namespace millrace::preprocess

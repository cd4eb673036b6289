// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/packed_run.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/feistel.hpp>
#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/instant/instant_order.hpp>
#include <millrace/dataset/detail/instant/order_keys.hpp>
#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/dataset/detail/open_pool.hpp>
#include <millrace/dataset/detail/packing/document_lengths.hpp>
#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/dataset/detail/packing/row_plan.hpp>
#include <millrace/dataset/detail/run/packed_sources.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>

#include "text_of_pieces.hpp"

namespace millrace::dataset {

struct packed_run::contents {
  static feistel shuffle(const source_info& of, std::int64_t epoch) noexcept {
    return {of.rows, keys_of(absorb(of.hash, static_cast<std::uint64_t>(epoch)))};
  }

  std::vector<instant_source> sources;
  instant_options options;
  packed_options packing;
  std::vector<source_info> infos;
  std::optional<schedule> blend;
  std::optional<open_pool<open_source>> pool;
};

namespace detail {

/// Scratch space for the parts of a row, one per thread.
inline std::vector<packed_part>& scratch_parts() {
  thread_local std::vector<packed_part> parts;
  return parts;
}

/// numpy takes seeds of 32 bits.
MILLRACE_INLINE std::uint32_t numpy_seed(packing_algorithm algorithm, std::uint64_t seed) {
  const bool is_used = algorithm == packing_algorithm::first_fit_decreasing ||
                       algorithm == packing_algorithm::first_fit_shuffle;
  if (!is_used) return 0;
  if (seed > 0xFFFFFFFFU) {
    throw config_error("the seed is " + std::to_string(seed) +
                       ", expected at most 4294967295 for " + std::string(name(algorithm)) +
                       ", which draws as numpy does");
  }
  return static_cast<std::uint32_t>(seed);
}

MILLRACE_INLINE void refuse_overlong(const row_plan& plan, const std::string& source,
                                     std::int64_t seq_len, packing_algorithm algorithm) {
  if (plan.overlong() == 0) return;
  throw config_error(
      "source " + source + " has " + std::to_string(plan.overlong()) +
      (plan.overlong() == 1 ? " document that is" : " documents that are") +
      " longer than a row of " + std::to_string(seq_len) + " tokens; the first is document " +
      std::to_string(plan.first_overlong()) + ", which takes " +
      std::to_string(plan.first_overlong_length()) + ". " + std::string(name(algorithm)) +
      " cannot cut documents: use a larger seq_len or best_fit, or leave these documents out "
      "(leave_out_overlong, --leave-out-overlong)");
}

MILLRACE_INLINE void check_packing(const packed_options& packing) {
  if (!packing.last_token_as_label || packing.algorithm != packing_algorithm::best_fit) return;
  throw config_error(
      "last_token_as_label requires packing with an algorithm that does not cut documents; "
      "best_fit does");
}

}  // namespace detail

MILLRACE_INLINE packed_run::open_source::open_source(const std::filesystem::path& prefix,
                                                     const packing_options& options, bool keep,
                                                     std::shared_ptr<const row_plan> plan)
    : search(index_columns(prefix, index_access::map_with_read_ahead)),
      rows(columns(), options, keep ? row_table_path(columns(), options) : std::filesystem::path(),
           std::move(plan)) {}

MILLRACE_INLINE packed_run::packed_run(const std::vector<instant_source>& sources,
                                       const instant_options& options,
                                       const packed_options& packing)
    : shared_(std::make_shared<contents>()) {
  detail::check_packing(packing);
  shared_->sources = sources;
  shared_->options = options;
  shared_->packing = packing;
  shared_->pool.emplace(
      std::ssize(sources),
      [of = shared_.get()](std::int64_t source) { return open_again(*of, source); },
      options.most_open);
  const std::vector<std::string> names = detail::checked_names(sources);
  std::vector<source_limit> limits;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const auto number = static_cast<std::int64_t>(s);
    const source_pointer opened = open_anew(*shared_, number, nullptr);
    const source_info info{names[s],
                           opened->rows.row_count(),
                           opened->columns().token_count(),
                           opened->columns().bin_size_bytes(),
                           opened->columns().type(),
                           order_hash(shuffle_of::bins, options.seed, name_hash(names[s])),
                           opened->rows.plan()};
    if (info.plan && !packing.leave_out_overlong) {
      detail::refuse_overlong(*info.plan, names[s], options.seq_len, packing.algorithm);
    }
    if (info.rows < 1) {
      throw config_error("source " + names[s] +
                         " has no documents to pack, expected at least one token; omit it");
    }
    shared_->infos.push_back(info);
    limits.push_back(detail::limit_of(sources[s], names[s], info.rows));
    shared_->pool->put(number, opened);
  }
  // With one source, weights have no effect, but states are compared with earlier ones.
  if (packing.weigh_by_rows && sources.size() > 1) {
    for (schedule_segment& segment : shared_->options.segments) {
      for (weighted_source& each : segment.sources) {
        const bool exists = 0 <= each.source && each.source < std::ssize(shared_->infos);
        if (exists) each.weight = static_cast<double>(info(each.source).rows);
      }
    }
  }
  const instant_options& used = shared_->options;
  shared_->blend.emplace(used.segments, std::move(limits),
                         detail::checked_steps(used.first_position_of, used.segments.size()),
                         used.train_samples);
}

MILLRACE_INLINE packed_run::source_pointer packed_run::open_anew(
    const contents& of, std::int64_t s, std::shared_ptr<const row_plan> plan) {
  const packing_algorithm algorithm = of.packing.algorithm;
  return std::make_shared<const open_source>(
      of.sources[static_cast<std::size_t>(s)].prefix,
      packing_options{.seq_len = of.options.seq_len,
                      .pad_documents_to = of.packing.pad_documents_to,
                      .threads = of.packing.threads,
                      .algorithm = algorithm,
                      .seed = detail::numpy_seed(algorithm, of.options.seed),
                      .last_token_as_label = of.packing.last_token_as_label},
      of.packing.keep_tables, std::move(plan));
}

MILLRACE_INLINE packed_run::source_pointer packed_run::open_again(const contents& of,
                                                                  std::int64_t s) {
  const source_info& expected = of.infos[static_cast<std::size_t>(s)];
  source_pointer opened = open_anew(of, s, expected.plan);
  const index_columns& found = opened->columns();
  if (opened->rows.row_count() != expected.rows || found.bin_size_bytes() != expected.bin_bytes ||
      found.type() != expected.type) {
    throw format_error(found.idx_path(), 0,
                       "the dataset has " + std::to_string(opened->rows.row_count()) +
                           " packed rows of " + std::to_string(found.token_count()) +
                           " tokens, but had " + std::to_string(expected.rows) + " of " +
                           std::to_string(expected.tokens) +
                           " when the run was created: it is another dataset, or was replaced");
  }
  return opened;
}

MILLRACE_INLINE const schedule& packed_run::blend() const noexcept {
  return *shared_->blend;
}

MILLRACE_INLINE std::int64_t packed_run::pad_documents_to() const noexcept {
  return shared_->packing.pad_documents_to;
}

MILLRACE_INLINE bool packed_run::last_token_as_label() const {
  return shared_->packing.last_token_as_label;
}

MILLRACE_INLINE packing_algorithm packed_run::algorithm() const noexcept {
  return shared_->packing.algorithm;
}

MILLRACE_INLINE const packed_run::source_info& packed_run::info(std::int64_t s) const noexcept {
  return shared_->infos[static_cast<std::size_t>(s)];
}

MILLRACE_INLINE packed_run::source_pointer packed_run::open(std::int64_t s) const {
  return shared_->pool->get(s);
}

MILLRACE_INLINE packing_report packed_run::packing_of(std::int64_t s) const {
  return open(s)->rows.report();
}

MILLRACE_INLINE packed_place packed_run::place_of(const source_sample& sample) const noexcept {
  const source_info& of = info(sample.source);
  const std::int64_t epoch = sample.k / of.rows;
  return {epoch, contents::shuffle(of, epoch)(sample.k % of.rows)};
}

MILLRACE_INLINE std::int64_t packed_run::end() const {
  return blend().end();
}

MILLRACE_INLINE std::int64_t packed_run::seq_len() const {
  return shared_->options.seq_len;
}

MILLRACE_INLINE std::int64_t packed_run::source_count() const {
  return static_cast<std::int64_t>(shared_->infos.size());
}

MILLRACE_INLINE const std::filesystem::path& packed_run::prefix(std::int64_t source) const {
  return shared_->sources[static_cast<std::size_t>(source)].prefix;
}

MILLRACE_INLINE std::vector<run_source> packed_run::sources() const {
  std::vector<run_source> all;
  for (std::int64_t s = 0; s < source_count(); ++s) {
    all.push_back({detail::bin_of(prefix(s)), info(s).type, info(s).bin_bytes});
  }
  return all;
}

MILLRACE_INLINE source_sample packed_run::at(std::int64_t position) const {
  const blend_place place = blend().at(position);
  return {place.source, place.k};
}

MILLRACE_INLINE std::int64_t packed_run::pieces(const source_sample& sample,
                                                std::vector<piece>& out) const {
  const source_pointer opened = open(sample.source);
  std::vector<packed_part>& parts = detail::scratch_parts();
  opened->rows.row(place_of(sample).row, parts);
  out.clear();
  for (const packed_part& part : parts) append_pieces(opened->columns(), part, out);
  return seq_len() - token_count(out) + (last_token_as_label() ? std::ssize(parts) : 0);
}

MILLRACE_INLINE void packed_run::starts_of(const source_sample& sample,
                                           std::span<const piece> pieces,
                                           std::vector<std::int64_t>& out) const {
  const source_pointer opened = open(sample.source);
  std::vector<packed_part>& parts = detail::scratch_parts();
  opened->rows.row(place_of(sample).row, parts);
  out.clear();
  std::int64_t share = 0;
  for (const packed_part& part : parts) {
    std::int64_t done = 0;
    for (; done < part.tokens; done += pieces[out.size() - 1].tokens) out.push_back(share + done);
    share += share_of(part, pad_documents_to(), last_token_as_label());
  }
}

MILLRACE_INLINE void packed_run::text_of(std::int64_t position, bool, sample_text& out) const {
  const source_sample sample = at(position);
  const source_pointer opened = open(sample.source);
  const index_columns& columns = opened->columns();
  std::vector<packed_part>& parts = detail::scratch_parts();
  opened->rows.row(place_of(sample).row, parts);
  detail::clear(out, position, sample.source);
  out.boundaries.push_back(0);
  out.document_ends.push_back(0);
  const auto end_document = [&](std::int64_t end, std::int64_t boundary) {
    out.boundaries.push_back(static_cast<std::int32_t>(boundary));
    out.document_ends.push_back(static_cast<std::int32_t>(end));
  };
  const bool labels = last_token_as_label();
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<piece>& pieces = detail::scratch_pieces();
    append_pieces(columns, parts[i], pieces);
    const std::int64_t before = labels ? static_cast<std::int64_t>(i) : 0;
    const std::int64_t end =
        detail::append_text(columns, pieces, sample.source, start + before, out) - before;
    start += share_of(parts[i], pad_documents_to(), labels);
    // Padding at the end of the row belongs to the last document, unless documents have labels
    // at all of their positions.
    const std::int64_t boundary = i + 1 < parts.size() || labels ? start : seq_len();
    end_document(labels ? end - 1 : end, boundary);
  }
  if (start < seq_len() && labels) end_document(start, seq_len());
}

MILLRACE_INLINE std::int64_t packed_run::taken(std::int64_t source, std::int64_t positions) const {
  return blend().taken(source, positions);
}

MILLRACE_INLINE sample_round packed_run::round_of(std::int64_t source, std::int64_t k) const {
  const std::int64_t rows = info(source).rows;
  const std::int64_t epoch = k / rows;
  return {epoch * rows, (epoch + 1) * rows, 1, "epoch " + std::to_string(epoch)};
}

MILLRACE_INLINE std::vector<left_out> packed_run::left_out_of(std::int64_t source,
                                                              const sample_round&) const {
  std::vector<left_out> all;
  const source_info& of = info(source);
  if (!of.plan || (of.plan->overlong() == 0 && !last_token_as_label())) return all;
  const source_pointer opened = open(source);
  std::vector<std::int64_t> length;
  const std::int64_t begin = last_token_as_label() ? 0 : of.plan->first_overlong();
  for (std::int64_t d = begin; d < of.plan->document_count(); ++d) {
    if (of.plan->row_of(d) != row_plan::no_row) continue;
    document_lengths(opened->columns(), d, d + 1, length);
    if (length[0] == 0) continue;
    const bool is_label = length[0] == 1 && last_token_as_label();
    const char* const why =
        is_label ? "in documents of one token" : "in documents longer than a row";
    const std::int64_t first = opened->search.first_token_of(opened->columns().document(d).first);
    if (!all.empty() && all.back().last == first && all.back().why == why) {
      all.back().last += length[0];
    } else {
      all.push_back({first, first + length[0], 1, why});
    }
  }
  return all;
}

MILLRACE_INLINE void packed_run::check_steps(const batch_steps& steps) const {
  detail::check_begins(blend(), steps);
}

MILLRACE_INLINE std::vector<std::int64_t> packed_run::positions_with(std::int64_t source,
                                                                     sequence_range sequences,
                                                                     std::int64_t before) const {
  const source_pointer opened = open(source);
  std::vector<std::int64_t> rows;
  for (std::int64_t sequence = sequences.first; sequence < sequences.last;) {
    const std::int64_t document = opened->search.document_of(sequence);
    const document_range range = opened->columns().document(document);
    // These rows are only candidates. A long document has several rows, and some of them do not
    // contain the sequence.
    for (const std::int64_t row : opened->rows.rows_of(document)) rows.push_back(row);
    sequence = range.last;
  }
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::vector<packed_part> parts;
  std::vector<piece> pieces;
  const auto holds = [&](std::int64_t row) {
    opened->rows.row(row, parts);
    pieces.clear();
    for (const packed_part& part : parts) append_pieces(opened->columns(), part, pieces);
    return std::ranges::any_of(pieces, [&](const piece& p) {
      return sequences.first <= p.sequence && p.sequence < sequences.last && p.tokens > 0;
    });
  };
  std::erase_if(rows, [&](std::int64_t row) { return !holds(row); });

  const source_info& of = info(source);
  const std::int64_t taken_before = taken(source, before);
  std::vector<std::int64_t> positions;
  for (std::int64_t e = 0; e * of.rows < taken_before; ++e) {
    const feistel order = contents::shuffle(of, e);
    for (const std::int64_t row : rows) {
      const std::int64_t k = e * of.rows + order.inverse(row);
      if (k >= taken_before) continue;
      if (const auto at = shared_->blend->position_of({source, k})) positions.push_back(*at);
    }
  }
  std::ranges::sort(positions);
  return positions;
}

MILLRACE_INLINE run_state packed_run::description() const {
  run_state state = detail::describe(shared_->sources, shared_->options);
  state.extra_token = false;
  state.packing = name(algorithm());
  state.pad_documents_to = pad_documents_to();
  state.last_token_as_label = last_token_as_label();
  return state;
}

}  // namespace millrace::dataset

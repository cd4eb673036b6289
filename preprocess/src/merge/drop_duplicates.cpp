// SPDX-License-Identifier: Apache-2.0
#include "merge/drop_duplicates.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/io/file_ops.hpp>

#include "merge/content_key.hpp"
#include "merge/duplicate_finder.hpp"
#include "merge/merge_input.hpp"
#include "merge/merge_sidecars.hpp"
#include "merge/merged_layout.hpp"
#include "merge/part_readers.hpp"
#include "merge/place_part.hpp"
#include "merge/sized_dataset.hpp"
#include "merge/token_budget.hpp"
#include "output/dataset_paths.hpp"
#include "output/disk_room.hpp"
#include "output/output_check.hpp"
#include "output/text_digests.hpp"
#include "output/written_meta.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t descriptors_of_part = 2;
// Descriptors for the outputs, the temporary file, and those inherited from the parent process.
constexpr std::size_t other_descriptors = 128;
constexpr std::size_t least_open_parts = 2;  // those of the two documents that are compared
constexpr std::size_t most_open_parts = 4096;
constexpr std::size_t compared_bytes = std::size_t{64} << 10;

// Returns how many parts may be open at the same time. To open a part again for each comparison
// takes longer than to compare.
std::size_t parts_at_a_time() {
  struct ::rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return least_open_parts;
  const std::size_t files =
      std::min<::rlim_t>(limit.rlim_cur, descriptors_of_part * most_open_parts);
  const std::size_t parts =
      (std::max(files, other_descriptors) - other_descriptors) / descriptors_of_part;
  return std::clamp(parts, least_open_parts, most_open_parts);
}

/// The datasets to merge, opened when they are needed. Documents are numbered across all of them.
class numbered_parts {
 public:
  numbered_parts(std::span<const std::filesystem::path> prefixes, bool multimodal,
                 const stop_flag& stop)
      : prefixes_(prefixes), inputs_(prefixes.size()) {
    const merge_input first(prefixes.front());
    type_ = first.view().type;
    for (const auto& prefix : prefixes) {
      stop.check();
      const merge_input input(prefix);
      expect_fits(input, first, multimodal);
      extents_.push_back(extent_of(input.view()));
      identities_.push_back(input.identity());
      first_document_.push_back(documents_);
      documents_ += extents_.back().documents;
    }
  }

  std::size_t size() const noexcept { return prefixes_.size(); }
  formats::dtype type() const noexcept { return type_; }
  std::uint64_t documents() const noexcept { return documents_; }
  std::uint64_t first_document_of(std::size_t part) const noexcept { return first_document_[part]; }

  /// The part that has a document.
  std::size_t part_of(std::uint64_t document) const {
    const auto after = std::ranges::upper_bound(first_document_, document);
    return static_cast<std::size_t>(after - first_document_.begin()) - 1;
  }

  /// Valid until two other parts were asked for.
  ///
  /// @throws io_error  the part cannot be opened, or was replaced.
  const merge_input& open(std::size_t part) {
    const std::size_t before = std::exchange(asked_for_, part);
    if (!inputs_[part]) {
      if (opened_.size() == most_open_) {
        if (opened_.front() == before) {
          opened_.pop_front();
          opened_.push_back(before);
        }
        inputs_[opened_.front()].reset();
        opened_.pop_front();
      }
      inputs_[part].emplace(reopen(prefixes_[part], extents_[part]));
      if (inputs_[part]->identity() != identities_[part]) {
        throw io_error(inputs_[part]->paths().idx, "open (it was replaced by another process)",
                       ESTALE);
      }
      opened_.push_back(part);
    }
    return *inputs_[part];
  }

 private:
  std::span<const std::filesystem::path> prefixes_;
  std::vector<dataset_extent> extents_;
  std::vector<io::file_identity> identities_;
  std::vector<std::uint64_t> first_document_;
  std::uint64_t documents_ = 0;
  formats::dtype type_{};
  std::size_t most_open_ = parts_at_a_time();
  std::vector<std::optional<merge_input>> inputs_;
  std::deque<std::size_t> opened_;
  std::size_t asked_for_ = 0;  // by the last call of open()
};

/// Compares the ids of documents that a duplicate_finder gives.
class id_comparison {
 public:
  id_comparison(numbered_parts& parts, const stop_flag& stop) : parts_(parts), stop_(stop) {}

  /// @throws stopped  `stop` is set; it is checked every few MiB.
  bool are_equal(const content_place& first, const content_place& later) {
    const merge_input& of_first = parts_.open(parts_.part_of(first.document));
    const merge_input& of_later = parts_.open(parts_.part_of(later.document));
    if (first.bytes == content_place::unstored_bytes && size_of(first.document) != later.bytes) {
      return false;
    }
    if (later.bytes <= near_bytes) return is_near_equal(of_first, first, of_later, later);
    for (std::uint64_t at = 0; at < later.bytes; at += compared_bytes) {
      if (++reads_ % (written_bytes_at_a_time / compared_bytes) == 0) stop_.check();
      const std::size_t size = std::min<std::uint64_t>(compared_bytes, later.bytes - at);
      of_first.read_tokens(first.begin + at, std::span(of_first_).first(size));
      of_later.read_tokens(later.begin + at, std::span(of_later_).first(size));
      if (std::memcmp(of_first_.data(), of_later_.data(), size) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t near_bytes = 1024;
  static constexpr std::size_t near_window_bytes = 4096;

  // Small documents that are compared soon are near each other, so reads several at once.
  bool is_near_equal(const merge_input& of_first, const content_place& first,
                     const merge_input& of_later, const content_place& later) {
    if (++reads_ % (written_bytes_at_a_time / compared_bytes) == 0) stop_.check();
    if (near_of_ != &of_later || later.begin < near_begin_ ||
        later.begin + later.bytes > near_begin_ + near_.size()) {
      near_of_ = &of_later;
      near_begin_ = later.begin;
      near_.resize(
          std::min<std::uint64_t>(near_window_bytes, of_later.view().bin_size_bytes - later.begin));
      of_later.read_tokens(near_begin_, near_);
    }
    const auto found = std::span(of_first_).first(later.bytes);
    of_first.read_tokens(first.begin, found);
    // Not with memcmp: of empty documents, there may be no bytes to point to.
    return std::ranges::equal(found,
                              std::span(near_).subspan(later.begin - near_begin_, later.bytes));
  }

  // The index was checked while the keys were made.
  std::uint64_t size_of(std::uint64_t document) {
    const std::size_t part = parts_.part_of(document);
    const merge_input& input = parts_.open(part);
    const formats::mmidx_view& idx = input.view();
    std::array<std::uint64_t, 2> sequences;
    input.read_index<std::uint64_t>(idx.document_index_offset(),
                                    document - parts_.first_document_of(part), sequences);
    const auto offset_of = [&](std::uint64_t sequence) {
      std::uint64_t pointer = idx.bin_size_bytes;
      if (sequence != idx.lengths.size()) {
        input.read_index(idx.pointers_offset(), sequence, std::span(&pointer, 1));
      }
      return pointer;
    };
    return offset_of(sequences[1]) - offset_of(sequences[0]);
  }

  numbered_parts& parts_;
  const stop_flag& stop_;
  std::uint64_t reads_ = 0;
  std::vector<std::byte> of_first_ = std::vector<std::byte>(compared_bytes);
  std::vector<std::byte> of_later_ = std::vector<std::byte>(compared_bytes);
  const merge_input* near_of_ = nullptr;  // whose tokens `near_` has, from near_begin_
  std::uint64_t near_begin_ = 0;
  std::vector<std::byte> near_;
};

/// The digests of the texts of all parts.
class all_digests {
 public:
  all_digests(std::span<const std::filesystem::path> prefixes, const numbered_parts& parts)
      : parts_(parts) {
    for (const auto& prefix : prefixes) {
      const auto path = dataset_paths(prefix).of(sidecar::digests);
      if (!is_file(path)) {
        throw config_error(fmt::format(
            "there is no {}; tasks with --drop-duplicates text are merged with their .digests: "
            "move it here, or run that task again with --overwrite",
            path.string()));
      }
      files_.emplace_back(path);
      const std::size_t part = files_.size() - 1;
      const std::uint64_t end =
          part + 1 == parts.size() ? parts.documents() : parts.first_document_of(part + 1);
      const std::uint64_t expected = end - parts.first_document_of(part);
      const auto found = static_cast<std::uint64_t>(files_.back().documents());
      if (found != expected) {
        throw format_error(path, 0,
                           fmt::format("it has the digests of {} documents, but the .idx has {}; "
                                       "it belongs to another dataset",
                                       found, expected));
      }
    }
  }

  void add_keys(duplicate_finder& to, const stop_flag& stop) const {
    for (const digest_file& file : files_) {
      for (std::int64_t i = 0; i < file.documents(); ++i) {
        if (i % 65536 == 0) {
          stop.check();
          file.let_go();
        }
        content_key key;
        const text_digest digest = file.at(i);
        std::memcpy(&key, digest.data(), sizeof key);
        to.add(key);
      }
    }
  }

  bool are_equal(std::uint64_t first, std::uint64_t later) const {
    return digest_of(first) == digest_of(later);
  }

 private:
  text_digest digest_of(std::uint64_t document) const {
    const std::size_t part = parts_.part_of(document);
    return files_[part].at(static_cast<std::int64_t>(document - parts_.first_document_of(part)));
  }

  const numbered_parts& parts_;
  std::deque<digest_file> files_;
};

/// The line of P.duplicates for a dropped document: see formats/spec/duplicates.md.
std::string duplicate_line(const formats::src_input& input, const formats::source_place& place,
                           std::uint64_t document) {
  const bool has_rows = input.unit == formats::src_unit::rows;
  formats::json_writer json;
  json.open('{').key("file").value(input.name).key("line").value(place.line);
  json.key(has_rows ? "row" : "byte").value(place.begin);
  if (!has_rows) json.key("bytes").value(place.end - place.begin);
  json.key("document").value(document).close('}');
  return json.text() + "\n";
}

/// Most bytes of such a line, without the name of the file.
constexpr std::uint64_t most_line_bytes = 128;

/// Does one write_without_duplicates().
class duplicate_dropper {
 public:
  duplicate_dropper(std::span<const std::filesystem::path> prefixes, const merge_options& options,
                    const duplicate_options& how)
      : prefixes_(prefixes),
        options_(options),
        how_(how),
        stop_(stop_flag_of(options)),
        parts_(prefixes, options.multimodal, stop_),
        finder_(dataset_paths(options.output_prefix).with(".keys"), parts_.documents(),
                how.memory_bytes, stop_) {}

  merge_summary write() {
    // Refuse what cannot be merged before hours of work.
    if (!options_.overwrite) refuse_existing(options_.output_prefix);
    if (how_.of_one_run) expect_metas();
    merged_sidecars sidecars = plan_sidecars(prefixes_);
    metas_ = sidecars.parts;
    expect_whole_run(sidecars);
    find();
    if (auto cut = cut_at_budget())
      sidecars = plan_sidecars(prefixes_.first(used_), *std::move(cut));
    const sized_layout layout = measure(sidecars);
    sized_dataset output(options_.output_prefix, layout, stop_);
    if (!options_.overwrite) refuse_existing(options_.output_prefix);
    reserve(output, sidecars);
    output.begin();
    inputs_.clear();
    for (std::size_t part = 0; part < used_; ++part) copy(part, sidecars, layout, output);
    if (sidecars.meta) complete(*sidecars.meta, layout);
    if (sidecars.src) inputs_.resize(sidecars.meta->inputs.size());
    output.finish(inputs_, sidecars.meta);

    merge_summary summary;
    summary.prefixes = {prefixes_.begin(), prefixes_.end()};
    summary.type = parts_.type();
    summary.sequences = static_cast<std::int64_t>(layout.sequences);
    summary.documents = static_cast<std::int64_t>(layout.documents);
    summary.tokens =
        static_cast<std::int64_t>(layout.bin_bytes / formats::size_bytes(parts_.type()));
    summary.duplicates = static_cast<std::int64_t>(duplicates_);
    summary.stopped_before = stopped_before_;
    summary.dropped = std::move(sidecars.dropped);
    if (layout.duplicates) {  // those of the parts stay there, but the whole has its own
      std::erase_if(summary.dropped,
                    [](const auto& each) { return each.which == sidecar::duplicates; });
    }
    return summary;
  }

 private:
  void expect_metas() const {
    for (const auto& prefix : prefixes_) {
      const auto path = dataset_paths(prefix).of(sidecar::meta);
      if (is_file(path)) continue;
      throw config_error(fmt::format(
          "there is no {}; tasks with --drop-duplicates are merged with their .meta: move it "
          "here, or run that task again with --overwrite",
          path.string()));
    }
  }

  void expect_whole_run(const merged_sidecars& sidecars) const {
    if (how_.of_one_run) {
      expect_tasks_of_one_run(prefixes_, metas_, "--drop-duplicates");
    } else if (sidecars.meta && sidecars.meta->tasks) {
      throw config_error(fmt::format(
          "--drop-duplicates: {} holds only some tasks of a run, expected all of them; what is "
          "left of them cannot be merged with the remaining tasks later",
          options_.input.string()));
    }
  }

  void find() {
    const auto claim = finder_.claim();
    reserve_all(std::span(&claim, 1), options_.output_prefix, "the search for duplicates",
                options_.room_advice, stop_);
    if (how_.by == duplicates_by::text) {
      const all_digests digests(prefixes_, parts_);
      digests.add_keys(finder_, stop_);
      finder_.find([&](const content_place& first, const content_place& later) {
        return digests.are_equal(first.document, later.document);
      });
    } else {
      content_hasher hasher;
      for (std::size_t part = 0; part < parts_.size(); ++part) {
        const merge_input& input = parts_.open(part);
        token_reader tokens(input, false, stop_);  // copy() compares the checksums
        for_each_document(input, false, stop_, [&](const stored_document& document) {
          tokens.for_each_piece(document.bytes, [&](auto bytes) { hasher.add(bytes); });
          finder_.add(hasher.take(), document.begin, document.bytes);
        });
      }
      id_comparison ids(parts_, stop_);
      finder_.find([&](const content_place& first, const content_place& later) {
        return ids.are_equal(first, later);
      });
    }
  }

  // Sets where the run ends because of `--max-tokens`. Returns the P.meta of what stays of the
  // parts that are used then, or nothing if all documents are used.
  std::optional<std::vector<formats::dataset_meta>> cut_at_budget() {
    if (!how_.of_one_run || most_tokens_of(metas_.front()) == nullptr) return std::nullopt;
    auto end = find_run_end(
        prefixes_, metas_, [&](std::uint64_t i) { return finder_.is_duplicate(i); }, stop_);
    if (!end) return std::nullopt;
    used_ = end->part + 1;
    end_ = parts_.first_document_of(end->part) +
           static_cast<std::uint64_t>(end->point.counts.documents);
    stopped_before_ = std::move(end->stopped_before);
    std::vector<formats::dataset_meta> cut(metas_.begin(),
                                           metas_.begin() + static_cast<std::ptrdiff_t>(used_));
    formats::dataset_meta& last = cut.back() = std::move(end->meta);
    set_counts(last.counts, end->point.counts, {}, parts_.type());
    if (last.src_version) {
      const bool has_rows = std::ranges::any_of(last.inputs, &formats::input_extent::has_rows);
      last.src_version = has_rows ? formats::src_version_of_rows : formats::src_version;
    }
    return cut;
  }

  bool stays(std::uint64_t document) const {
    return document < end_ && !finder_.is_duplicate(document);
  }

  sized_layout measure(const merged_sidecars& sidecars) {
    sized_layout layout{.type = parts_.type(),
                        .multimodal = options_.multimodal,
                        .checksums = sidecars.sum,
                        .provenance = sidecars.src,
                        .mask = sidecars.mask,
                        .bad = sidecars.bad};
    for (std::size_t part = 0; part < used_; ++part) {
      const merge_input& input = parts_.open(part);
      if (sidecars.meta) expect_meta_of(input, metas_[part]);
      std::uint64_t number = parts_.first_document_of(part);
      for_each_document(input, false, stop_, [&](const stored_document& document) {
        if (!stays(number++)) return;
        ++layout.documents;
        layout.sequences += document.lengths.size();
        layout.bin_bytes += document.bytes;
        if (document.lengths.empty()) ++empty_documents_;
      });
    }
    duplicates_ = end_ - layout.documents;
    layout.duplicates = layout.provenance && duplicates_ != 0;
    return layout;
  }

  void reserve(sized_dataset& output, const merged_sidecars& sidecars) {
    const auto used = prefixes_.first(used_);
    unsure_bytes most;
    // Without some documents, the places of the others take no more bytes.
    if (sidecars.src) most.src = bytes_of_all(used, sidecar::src);
    if (sidecars.bad) most.bad = bytes_of_all(used, sidecar::bad);
    if (sidecars.meta) most.meta = formats::meta_bytes(*sidecars.meta);
    if (sidecars.src) {
      std::size_t most_name = 0;
      for (const auto& input : sidecars.meta->inputs) {
        formats::json_writer json;
        most_name = std::max(most_name, json.value(input.path).text().size());
      }
      most.duplicates = duplicates_ * (most_line_bytes + most_name);
    }
    reserve_all(output.claims(most), options_.output_prefix, "the merged dataset",
                options_.room_advice, stop_);
  }

  void copy(std::size_t part, const merged_sidecars& sidecars, const sized_layout& layout,
            sized_dataset& output) {
    const merge_input& input = parts_.open(part);
    token_reader tokens(input, sidecars.sum.has_value(), stop_);
    std::optional<place_reader> places;
    if (sidecars.src) {
      places.emplace(input, metas_[part], sidecars.changes[part].shift, inputs_);
    }
    const std::uint64_t item = formats::size_bytes(parts_.type());
    std::optional<part_mask> mask;
    if (sidecars.mask) {
      mask.emplace(input.paths().of(sidecar::mask), input.view().bin_size_bytes / item);
    }
    std::uint64_t number = parts_.first_document_of(part);
    for_each_document(input, options_.multimodal, stop_, [&](const stored_document& document) {
      const auto place = places ? places->next() : formats::source_place{};
      const bool is_kept = stays(number);
      tokens.for_each_piece(document.bytes, [&](std::span<const std::byte> bytes) {
        if (is_kept) output.append_tokens(bytes);
      });
      if (is_kept) {
        if (mask) {
          output.append_mask(mask->bits(), document.begin / item,
                             (document.begin + document.bytes) / item);
        }
        output.end_document(document.lengths, document.modes, place);
      } else if (number < end_ && layout.duplicates) {
        const duplicate found = finder_.next();
        output.append_duplicate(
            duplicate_line(inputs_.at(place.input), place, finder_.number_of(found.first)));
      }
      ++number;
    });
    tokens.finish();
    if (sidecars.bad) {
      append_bad_lines(input.paths(), sidecars.parts[part], sidecars.changes[part], output.bad(),
                       stop_, part + 1 == used_ && stopped_before_);
    }
  }

  void complete(formats::dataset_meta& meta, const sized_layout& layout) const {
    meta.counts.documents = static_cast<std::int64_t>(layout.documents);
    meta.counts.empty_documents = static_cast<std::int64_t>(empty_documents_);
    meta.counts.sequences = static_cast<std::int64_t>(layout.sequences);
    meta.counts.tokens =
        static_cast<std::int64_t>(layout.bin_bytes / formats::size_bytes(parts_.type()));
    meta.counts.duplicates += static_cast<std::int64_t>(duplicates_);
    meta.bin_bytes = layout.bin_bytes;
    if (how_.of_one_run) return;
    drop_option(meta, drop_duplicates_option);
    meta.options.emplace_back(drop_duplicates_option, name_of(how_.by));
  }

  std::span<const std::filesystem::path> prefixes_;
  const merge_options& options_;
  const duplicate_options& how_;
  stop_flag stop_;
  numbered_parts parts_;
  duplicate_finder finder_;
  std::vector<formats::dataset_meta> metas_;  // of the whole parts; empty without P.meta
  std::size_t used_ = parts_.size();          // number of parts that are copied
  std::uint64_t end_ = parts_.documents();    // document at which the run ends
  std::optional<std::string> stopped_before_;
  std::uint64_t duplicates_ = 0;
  std::uint64_t empty_documents_ = 0;
  std::vector<formats::src_input> inputs_;
};

}  // namespace

merge_summary write_without_duplicates(std::span<const std::filesystem::path> parts,
                                       const merge_options& options, const duplicate_options& how) {
  return duplicate_dropper(parts, options, how).write();
}

std::optional<duplicates_by> duplicates_of_tasks(std::span<const std::filesystem::path> parts) {
  std::optional<duplicates_by> by;
  for (const auto& part : parts) {
    const auto path = dataset_paths(part).of(sidecar::meta);
    if (!is_file(path)) continue;
    const auto meta = read_metas(std::span(&part, 1)).front();
    if (!meta.tasks) continue;
    const std::string* value = option_of(meta, drop_duplicates_option);
    if (value == nullptr) continue;
    for (const duplicates_by each : {duplicates_by::ids, duplicates_by::text}) {
      if (*value == name_of(each)) by = each;
    }
  }
  return by;
}

}  // namespace millrace::preprocess

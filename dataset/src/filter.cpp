// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/filter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <millrace/dataset/detail/dataset_writer.hpp>
#include <millrace/dataset/detail/document_content.hpp>
#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::dataset {

namespace detail {

/// Writes the kept documents, one kind of entry after the other.
class document_filter {
 public:
  document_filter(const indexed_dataset& data, const std::vector<document_numbers>& keep,
                  const filter_options& options)
      : data_(data), keep_(keep), options_(options), watch_(data.stream().bytes()) {}

  filtered_dataset write(const std::filesystem::path& prefix) {
    const auto sources = document_sources::find(data_);
    const auto mask = token_mask::find(data_);
    if (mask) mask->verify();
    filtered_dataset done;
    done.type = data_.type();
    done.places = sources.has_value();
    dataset_writer out(prefix, {.type = data_.type(),
                                .modes = data_.is_multimodal(),
                                .places = done.places,
                                .mask = mask.has_value(),
                                .overwrite = options_.overwrite,
                                .bytes = least_bytes()});
    for (const document_numbers& range : keep_) {
      write_tokens(range, out);
      write_index(range, out, done);
      if (mask) out.append_mask(mask->bits(), token_of(range.first), token_of(range.last));
    }
    std::vector<formats::src_input> inputs;
    if (sources) {
      write_places(*sources, out);
      inputs = sources->inputs();
    }
    watch_.check_there(data_.bin_path());
    done.documents = out.document_count();
    done.sequences = out.sequence_count();
    done.tokens = out.token_count();
    done.sum_root = out.finish(inputs);
    done.mask_root = out.mask_root();
    done.trained = out.trained_count();
    out.publish(options_.meta ? options_.meta(done) : std::string());
    return done;
  }

 private:
  static constexpr std::int64_t entries_at_a_time = std::int64_t{1} << 16;

  document_range sequences_of(const document_numbers& range) const {
    return {data_.document(range.first).first, data_.document(range.last - 1).last};
  }

  /// Offset of a sequence in the `.bin`, in bytes.
  std::uint64_t byte_of(std::int64_t sequence) const {
    if (sequence == data_.sequence_count()) return data_.bin_size_bytes();
    return static_cast<std::uint64_t>(data_.index().pointers[static_cast<std::size_t>(sequence)]);
  }

  /// The number of tokens before a document.
  std::uint64_t token_of(std::int64_t document) const {
    const std::int64_t sequence = document == data_.document_count()
                                      ? data_.sequence_count()
                                      : data_.document(document).first;
    return byte_of(sequence) / formats::size_bytes(data_.type());
  }

  /// The size of the new `.bin` and `.idx`.
  std::uint64_t least_bytes() const {
    std::uint64_t bytes = 0;
    for (const document_numbers& range : keep_) {
      const document_range sequences = sequences_of(range);
      bytes += byte_of(sequences.last) - byte_of(sequences.first) +
               12 * static_cast<std::uint64_t>(sequences.size()) +
               8 * static_cast<std::uint64_t>(range.last - range.first);
    }
    return bytes;
  }

  // Kept documents that follow each other are one range of the .bin.
  void write_tokens(const document_numbers& range, dataset_writer& out) const {
    const document_range sequences = sequences_of(range);
    const std::uint64_t end = byte_of(sequences.last);
    constexpr std::uint64_t bytes_at_a_time = std::uint64_t{4} << 20;
    for (std::uint64_t at = byte_of(sequences.first); at < end;) {
      const std::uint64_t count = std::min(bytes_at_a_time, end - at);
      out.append_tokens(data_.stream().bytes().subspan(static_cast<std::size_t>(at),
                                                       static_cast<std::size_t>(count)));
      at += count;
      watch_.check_there(data_.bin_path());
      if (options_.progress) options_.progress(out.token_count());
    }
  }

  void write_index(const document_numbers& range, dataset_writer& out,
                   filtered_dataset& done) const {
    const document_range sequences = sequences_of(range);
    const std::int64_t begin = out.sequence_count();
    std::vector<std::int32_t> lengths;
    std::vector<std::int8_t> modes;
    for (std::int64_t s = sequences.first; s < sequences.last;) {
      lengths.clear();
      modes.clear();
      const std::int64_t end = std::min(s + entries_at_a_time, sequences.last);
      for (; s < end; ++s) {
        lengths.push_back(data_.index().lengths[static_cast<std::size_t>(s)]);
        if (data_.is_multimodal()) modes.push_back(data_.mode(s));
      }
      out.append_sequences(lengths, modes);
    }
    std::vector<std::int64_t> ends;
    for (std::int64_t d = range.first; d < range.last; ++d) {
      const document_range of = data_.document(d);
      if (of.empty()) ++done.empty_documents;
      ends.push_back(begin + of.last - sequences.first);
      if (std::ssize(ends) < entries_at_a_time && d + 1 < range.last) continue;
      out.append_document_ends(ends);
      ends.clear();
    }
  }

  void write_places(const document_sources& sources, dataset_writer& out) const {
    std::vector<formats::source_place> places;
    auto range = keep_.begin();
    sources.for_each([&](std::int64_t document, const formats::source_place& place) {
      while (range != keep_.end() && range->last <= document) ++range;
      if (range == keep_.end() || document < range->first) return;
      places.push_back(place);
      if (std::ssize(places) < entries_at_a_time) return;
      out.append_places(places);
      places.clear();
    });
    out.append_places(places);
  }

  const indexed_dataset& data_;
  const std::vector<document_numbers>& keep_;
  const filter_options& options_;
  lost_page_watch watch_;
};

/// True if two documents with as many tokens train the same ones of them.
MILLRACE_INLINE bool have_same_bits(const indexed_dataset& data, const formats::bit_span& bits,
                                    std::int64_t x, std::int64_t y) {
  const auto first_token = [&](std::int64_t document) {
    const auto sequence = static_cast<std::size_t>(data.document(document).first);
    return static_cast<std::uint64_t>(data.index().pointers[sequence]) /
           formats::size_bytes(data.type());
  };
  const auto tokens = static_cast<std::uint64_t>(data.document_tokens(x).size());
  if (tokens == 0) return true;
  const std::uint64_t in_x = first_token(x);
  const std::uint64_t in_y = first_token(y);
  for (std::uint64_t at = 0; at < tokens; at += 64) {
    const auto count = static_cast<unsigned>(std::min<std::uint64_t>(64, tokens - at));
    if (bits.word(in_x + at, count) != bits.word(in_y + at, count)) return false;
  }
  return true;
}

/// True if both are prefixes of the same files.
MILLRACE_INLINE bool is_same_dataset(std::filesystem::path a, std::filesystem::path b) {
  std::error_code ignored;
  return a == b || std::filesystem::equivalent(a += ".idx", b += ".idx", ignored);
}

}  // namespace detail

MILLRACE_INLINE std::vector<document_numbers> joined_documents(
    std::vector<document_numbers> documents) {
  std::erase_if(documents, [](const document_numbers& each) { return each.first >= each.last; });
  std::ranges::sort(documents, {}, &document_numbers::first);
  std::vector<document_numbers> joined;
  for (const document_numbers& each : documents) {
    if (!joined.empty() && each.first <= joined.back().last) {
      joined.back().last = std::max(joined.back().last, each.last);
    } else {
      joined.push_back(each);
    }
  }
  return joined;
}

MILLRACE_INLINE std::vector<document_numbers> other_documents(
    const std::vector<document_numbers>& documents, std::int64_t document_count) {
  std::vector<document_numbers> others;
  std::int64_t next = 0;
  for (const document_numbers& each : documents) {
    if (next < each.first) others.push_back({next, each.first});
    next = each.last;
  }
  if (next < document_count) others.push_back({next, document_count});
  return others;
}

MILLRACE_INLINE std::vector<document_numbers> repeated_documents(
    const indexed_dataset& data, int workers,
    const std::function<void(std::int64_t tokens)>& progress) {
  std::vector<listed_document> list(static_cast<std::size_t>(data.document_count()));
  for (std::size_t d = 0; d < list.size(); ++d) {
    list[d].document = static_cast<std::int64_t>(d);
  }
  const indexed_dataset* const datasets[] = {&data};
  group_equal_documents(datasets, list, {.workers = workers, .modes = true, .progress = progress});
  std::ranges::sort(list, [](const listed_document& x, const listed_document& y) {
    return x.group != y.group ? x.group < y.group : x.document < y.document;
  });
  const auto mask = token_mask::find(data);
  std::vector<document_numbers> copies;
  std::vector<std::int64_t> firsts;  // documents of a group that differ in their masks
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i == 0 || list[i].group != list[i - 1].group) firsts.clear();
    const std::int64_t document = list[i].document;
    const bool is_copy = std::ranges::any_of(firsts, [&](std::int64_t first) {
      return !mask || detail::have_same_bits(data, mask->bits(), first, document);
    });
    if (is_copy) {
      copies.push_back({document, document + 1});
    } else {
      firsts.push_back(document);
    }
  }
  return joined_documents(std::move(copies));
}

MILLRACE_INLINE filtered_dataset filter_documents(const indexed_dataset& data,
                                                  const std::vector<document_numbers>& keep,
                                                  const std::filesystem::path& prefix,
                                                  const filter_options& options) {
  if (keep.empty()) {
    throw config_error(data.prefix().string() +
                       ": no document is kept, so there is nothing to write");
  }
  if (keep.front().first < 0 || keep.back().last > data.document_count()) {
    throw config_error(
        data.prefix().string() + ": there is no document " +
        std::to_string(keep.front().first < 0 ? keep.front().first : keep.back().last - 1) +
        (data.document_count() == 0
             ? "; it has none"
             : "; it has documents 0 to " + std::to_string(data.document_count() - 1)));
  }
  if (detail::is_same_dataset(data.prefix(), prefix)) {
    throw config_error(prefix.string() +
                       ": the output is the input; write to another prefix, then rename the files");
  }
  return detail::document_filter(data, keep, options).write(prefix);
}

}  // namespace millrace::dataset

// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/convert.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_ops.hpp>

#include "convert_ids.hpp"
#include "packed_rows_source.hpp"
#include "token_source.hpp"
#include "token_target.hpp"

namespace millrace::dataset {

namespace detail {

inline constexpr std::size_t chunk_bytes = std::size_t{1} << 18;  // stays in the L2 cache

/// True if no token needs to be looked at: the bytes are the same, and every value is an id.
MILLRACE_INLINE bool is_plain_copy(formats::dtype from, formats::dtype to, bool keeps_numbers) {
  return from == to && (keeps_numbers || from == formats::dtype::uint16);
}

/// Calls `found(i)` for each token with this id.
template <class T, class Found>
void for_each_mark(const T* tokens, std::size_t count, std::int64_t id, Found&& found) {
  if (id < 0 || static_cast<std::uint64_t>(id) > std::numeric_limits<T>::max()) return;
  const T wanted = static_cast<T>(id);
  constexpr std::size_t block = 64;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t end = std::min(count, begin + block);
    bool has_any = false;
    for (std::size_t i = begin; i < end; ++i) has_any |= tokens[i] == wanted;
    if (!has_any) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (tokens[i] == wanted) found(i);
    }
  }
}

/// What a pass over the tokens does with documents.
class document_pass {
 public:
  document_pass(const token_source& source, const convert_options& options, token_target& target,
                conversion& done)
      : source_(source), options_(options), target_(target), done_(done) {
    if (source.open_ends) known_ = source.open_ends();
    if (known_) peeked_ = known_();
  }

  /// The id to look for; empty if tokens need not be looked at.
  std::optional<std::int64_t> mark() const { return options_.eod ? options_.eod : options_.bod; }

  /// A mark was found. Marks come in the order of the tokens.
  void add_mark(std::int64_t token) {
    const std::int64_t end = options_.eod ? token + 1 : token;
    if (end == 0) return;
    last_is_marked_ = end == source_.tokens;
    if (!known_) return add_end(end);
    take_known_before(end);
    if (peeked_ == end) {
      take_known(end);
    } else if (end != source_.tokens) {
      ++false_marks_;
    }
  }

  /// All marks were found.
  void finish() {
    if (known_) {
      take_known_before(std::numeric_limits<std::int64_t>::max());
    } else if (mark()) {
      if (last_ != source_.tokens) add_end(source_.tokens);
    }
  }

  std::int64_t unmarked() const noexcept { return unmarked_; }
  std::int64_t false_marks() const noexcept { return false_marks_; }
  /// True if an eod ends every document.
  bool ends_with_eod() const noexcept {
    return options_.eod && unmarked_ == 0 && (last_is_marked_ || source_.tokens == 0);
  }

 private:
  /// Takes the ends that no mark explains.
  void take_known_before(std::int64_t end) {
    while (peeked_ && *peeked_ < end) {
      // Tokens end a document, with or without a mark. An empty document is another loss.
      if (mark() && *peeked_ != last_ && *peeked_ != source_.tokens) ++unmarked_;
      take_known(*peeked_);
    }
  }
  void take_known(std::int64_t end) {
    while (peeked_ == end) {  // empty documents have the same end
      add_end(end);
      peeked_ = known_();
    }
  }
  void add_end(std::int64_t end) {
    ++done_.documents;
    if (end == last_) ++done_.empty_documents;
    last_ = end;
    // The documents of a dataset that becomes a dataset are copied with their sequences.
    if (!(source_.data && target_.dataset())) target_.append_end(end);
    while (file_ + 1 < source_.files.size() && end > before_ + source_.files[file_].tokens) {
      before_ += source_.files[file_++].tokens;
    }
    if (!done_.inputs.empty()) ++done_.inputs[file_].documents;
  }

  const token_source& source_;
  const convert_options& options_;
  token_target& target_;
  conversion& done_;
  next_end known_;
  std::optional<std::int64_t> peeked_;
  std::int64_t last_ = 0;
  std::int64_t unmarked_ = 0;
  std::int64_t false_marks_ = 0;
  bool last_is_marked_ = false;
  std::size_t file_ = 0;     // in which the last document ends
  std::int64_t before_ = 0;  // tokens before this file
};

/// @param most  the largest id that the output holds
[[noreturn]] MILLRACE_INLINE void throw_not_an_id(const token_source& source,
                                                  const token_file& file, std::int64_t token,
                                                  std::int64_t value, std::uint64_t most) {
  const std::uint64_t item = formats::size_bytes(source.type);
  // Arrays have uint32, which is read as int32.
  if (!source.data && value < 0 && item == 4) value += std::int64_t{1} << 32;
  throw format_error(file.path, file.begin + static_cast<std::uint64_t>(token) * item,
                     "token " + std::to_string(token) + " is " + std::to_string(value) +
                         ", but the output holds ids from 0 to " + std::to_string(most) +
                         "; nothing was written");
}

/// Copies the tokens of one file.
MILLRACE_INLINE void copy_file(const token_source& source, std::size_t index, bool keeps_numbers,
                               document_pass& documents, token_target& target,
                               converted_input* input, const convert_options& options,
                               std::int64_t& copied) {
  const token_file& file = source.files[index];
  const formats::dtype to = target.type();
  const std::uint64_t item = formats::size_bytes(source.type);
  const io::unique_fd fd = io::open_read_only(file.path, O_NONBLOCK);
  const auto shrunk = [&](std::uint64_t at) {
    throw format_error(file.path, at, "the file became shorter while it was being read");
  };
  const std::int64_t begin = copied;
  const bool is_plain = is_plain_copy(source.type, to, keeps_numbers);
  if (is_plain && !documents.mark() && !target.dataset()) {
    constexpr std::int64_t piece = std::int64_t{1} << 25;
    while (copied - begin < file.tokens) {
      const std::int64_t tokens = std::min(piece, file.tokens - (copied - begin));
      const std::uint64_t at = file.begin + static_cast<std::uint64_t>(copied - begin) * item;
      const std::uint64_t size = static_cast<std::uint64_t>(tokens) * item;
      const std::uint64_t found = target.append_copy(fd, file.path, at, size);
      if (found != size) shrunk(at + found);
      copied += tokens;
      if (options.progress) options.progress(copied, source.tokens);
    }
    return;
  }

  // Aligned for every type.
  std::vector<std::int64_t> in(chunk_bytes / 8);
  std::vector<std::int64_t> out(chunk_bytes);  // uint8 may become int64
  if (input != nullptr && file.begin != 0) {
    const auto header = std::as_writable_bytes(std::span(in)).first(file.begin);
    if (io::pread_some(fd, header, 0, file.path) != header.size()) shrunk(0);
    input->crc32c = formats::crc32c(header, input->crc32c);
  }
  while (copied - begin < file.tokens) {
    const std::int64_t first = copied - begin;
    const std::int64_t tokens =
        std::min(static_cast<std::int64_t>(chunk_bytes / item), file.tokens - first);
    const auto count = static_cast<std::size_t>(tokens);
    const auto bytes = std::as_writable_bytes(std::span(in)).first(count * item);
    const std::uint64_t at = file.begin + static_cast<std::uint64_t>(first) * item;
    const std::size_t found = io::pread_some(fd, bytes, at, file.path);
    if (found != bytes.size()) shrunk(at + found);
    if (input != nullptr) input->crc32c = formats::crc32c(bytes, input->crc32c);
    formats::with_type(source.type, [&]<class From>(From) {
      if constexpr (std::is_integral_v<From>) {
        const auto* from = reinterpret_cast<const From*>(in.data());
        if (const auto id = documents.mark()) {
          for_each_mark(from, count, *id, [&](std::size_t i) {
            documents.add_mark(copied + static_cast<std::int64_t>(i));
          });
        }
        if (is_plain) return target.append(bytes);
        formats::with_type(to, [&]<class To>(To) {
          if constexpr (std::is_integral_v<To>) {
            auto* const result = reinterpret_cast<To*>(out.data());
            const bool all_fit = convert_ids(from, result, count);
            if (!all_fit && !(keeps_numbers && holds_every<To, From>)) {
              const From* const bad = first_bad_id<To>(from, count);
              throw_not_an_id(source, file, first + (bad - from), static_cast<std::int64_t>(*bad),
                              static_cast<std::uint64_t>(std::numeric_limits<To>::max()));
            }
            target.append(std::as_bytes(std::span(result, count)));
          }
        });
      }
    });
    copied += tokens;
    if (options.progress) options.progress(copied, source.tokens);
  }
}

/// Copies sequences, modes and documents of a dataset.
MILLRACE_INLINE void copy_index(const indexed_dataset& data, dataset_writer& to) {
  constexpr std::size_t piece = 1 << 16;
  const auto& idx = data.index();
  std::vector<std::int32_t> lengths;
  std::vector<std::int8_t> modes;
  for (std::size_t i = 0; i < idx.lengths.size(); ++i) {
    lengths.push_back(idx.lengths[i]);
    if (!idx.modes.empty()) modes.push_back(idx.modes[i]);
    if (lengths.size() < piece && i + 1 < idx.lengths.size()) continue;
    to.append_sequences(lengths, modes);
    lengths.clear();
    modes.clear();
  }
  std::vector<std::int64_t> ends;
  for (std::size_t d = 1; d < idx.document_index.size(); ++d) {
    ends.push_back(idx.document_index[d]);
    if (ends.size() < piece && d + 1 < idx.document_index.size()) continue;
    to.append_document_ends(ends);
    ends.clear();
  }
}

/// Copies the places of all documents. @return the inputs
MILLRACE_INLINE std::vector<formats::src_input> copy_places(const document_sources& sources,
                                                            dataset_writer& to) {
  constexpr std::size_t piece = 1 << 12;
  std::vector<formats::source_place> places;
  sources.for_each([&](std::int64_t, const formats::source_place& place) {
    places.push_back(place);
    if (places.size() < piece) return;
    to.append_places(places);
    places.clear();
  });
  to.append_places(places);
  return sources.inputs();
}

MILLRACE_INLINE std::string count_text(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

/// What a dataset has that an array cannot hold.
MILLRACE_INLINE void list_losses_of_dataset(const indexed_dataset& data, std::string_view to,
                                            std::vector<std::string>& lost) {
  std::int64_t several = 0;
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    const document_range range = data.document(d);
    several += range.size() > 1 || (range.size() == 1 && data.sequence_length(range.first) == 0);
  }
  const std::string form(to);
  if (several != 0) {
    lost.push_back("the sequences inside " + count_text(several, "document") +
                   ", each of which becomes one sequence");
  }
  if (data.is_multimodal()) lost.push_back("the modes of sequences");
  const sidecar_paths beside(data.prefix());
  std::string names;
  for (const auto& path : {beside.meta, beside.sum, beside.src}) {
    if (io::is_there(path)) names += (names.empty() ? "" : ", ") + path.string();
  }
  if (!names.empty())
    lost.push_back("what is in " + names + ", for which " + form + " has no place");
}

/// Lists what is known before a token is read.
MILLRACE_INLINE std::vector<std::string> list_losses(const token_source& source,
                                                     const convert_options& options) {
  const token_format to = options.to;
  std::vector<std::string> lost = source.lost;
  const std::string form(name(to));
  if (to == token_format::megatron) return lost;
  if (source.data) list_losses_of_dataset(*source.data, form, lost);
  if (!source.tokenizer.empty() && to != token_format::nanoset) {
    lost.push_back("the name of the tokenizer, " + source.tokenizer);
  }
  if (to == token_format::bridge) return lost;  // the rest is known after packing
  if (source.empty_documents != 0 && to != token_format::nanoset) {
    lost.push_back(count_text(source.empty_documents, "empty document"));
  }
  const bool has_ends = to == token_format::nanoset || to == token_format::olmo;
  if (!has_ends && source.has_mask()) {
    lost.push_back("the mask: which tokens a model is to predict");
  }
  if (!has_ends && source.documents > 1 && !options.eod && !options.bod) {
    lost.push_back("where " + std::to_string(source.documents) + " documents end: " + form +
                   " has no place for it, and without --eod-id no token is known to mark it");
  }
  return lost;
}

MILLRACE_INLINE void refuse_losses(const std::vector<std::string>& lost,
                                   const convert_options& options) {
  if (lost.empty() || options.lossy) return;
  std::string text;
  for (const std::string& each : lost) text += (text.empty() ? "" : "; ") + each;
  throw config_error("would be lost: " + text +
                     "; pass --lossy to convert without it; nothing was "
                     "written");
}

MILLRACE_INLINE void check_options(std::span<const std::filesystem::path> inputs,
                                   const convert_options& options) {
  if (options.to == token_format::bridge &&
      (options.output_type || options.eod || options.bod || !options.boundaries.empty() ||
       options.shard_tokens != 0)) {
    throw config_error(
        "packed rows have ids of int32 and the documents of the dataset, in one file: "
        "--output-dtype, --eod-id, --bod-id, --boundaries and --shard-tokens do not apply");
  }
  if (inputs.empty()) throw config_error("expected a file or dataset to convert, found none");
  if (options.eod && options.bod) {
    throw config_error("--eod-id and --bod-id cannot be combined: documents are marked by one id");
  }
  if (options.shard_tokens < 0) {
    throw config_error("--shard-tokens " + std::to_string(options.shard_tokens) +
                       ": expected 1 or more");
  }
  for (const auto& type : {options.type}) {
    if (type && *type != formats::dtype::uint16 && *type != formats::dtype::int32) {
      throw config_error("--dtype " + std::string(formats::name(*type)) +
                         ": expected uint16 or uint32, the types of tokens in arrays");
    }
  }
  if (options.output_type && (*options.output_type == formats::dtype::float32 ||
                              *options.output_type == formats::dtype::float64)) {
    throw config_error("--output-dtype " + std::string(formats::name(*options.output_type)) +
                       ": expected a type of integers");
  }
  for (const auto& id : {options.eod, options.bod}) {
    if (id && *id < 0) {
      throw config_error("an id is " + std::to_string(*id) + ", expected 0 or more");
    }
  }
}

}  // namespace detail

MILLRACE_INLINE conversion convert(std::span<const std::filesystem::path> inputs,
                                   const std::filesystem::path& output_prefix,
                                   const convert_options& options) {
  detail::check_options(inputs, options);
  const detail::token_source source = detail::open_source(inputs, options);
  const bool from_dataset = source.data != nullptr;
  const bool to_dataset = options.to == token_format::megatron;
  const bool has_place_for_ends =
      to_dataset || options.to == token_format::nanoset || options.to == token_format::olmo;
  const bool from_rows = source.format == token_format::bridge;
  if (has_place_for_ends && !from_rows && !source.open_ends && !options.eod && !options.bod) {
    throw config_error(
        inputs.front().string() +
        " does not say where documents end; pass --eod-id N, the id that ends each document, "
        "--bod-id N, the id that begins each, or --boundaries FILE");
  }
  conversion done;
  done.from = source.format;
  done.to = options.to;
  done.type = detail::output_type(source, options);
  done.tokens = source.tokens;
  done.tokenizer = source.tokenizer;
  done.lost = detail::list_losses(source, options);
  if (options.to == token_format::bridge) {
    detail::convert_to_rows(source, output_prefix, options, done);
    return done;
  }
  detail::refuse_losses(done.lost, options);
  if (from_rows) {
    detail::token_target target(output_prefix, source, done.type, options);
    detail::copy_packed_rows(source, options, target, done);
    target.publish(options, {}, done);
    return done;
  }
  if (!from_dataset && to_dataset) {
    for (const auto& file : source.files) {
      done.inputs.push_back({.path = file.path.string(),
                             .bytes = file.begin + static_cast<std::uint64_t>(file.tokens) *
                                                       formats::size_bytes(source.type)});
    }
  }

  detail::token_target target(output_prefix, source, done.type, options);
  detail::document_pass documents(source, options, target, done);
  std::int64_t copied = 0;
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    detail::copy_file(source, i, from_dataset && to_dataset, documents, target,
                      done.inputs.empty() ? nullptr : &done.inputs[i], options, copied);
  }
  documents.finish();
  std::vector<formats::src_input> origins;
  if (from_dataset && to_dataset) {
    detail::copy_index(*source.data, *target.dataset());
    if (source.places) origins = detail::copy_places(*source.places, *target.dataset());
  }

  if (source.has_mask() && has_place_for_ends) {
    detail::for_each_mask_piece(source, [&](const auto& bits) { target.append_mask(bits); });
  }

  const std::string id = std::to_string(documents.mark().value_or(0));
  done.ends_with_eod = documents.ends_with_eod();
  if (!has_place_for_ends && documents.unmarked() != 0) {
    done.lost.push_back("where " + detail::count_text(documents.unmarked(), "document") +
                        " of the output should end, because id " + id + " does not mark it");
  }
  if (!has_place_for_ends && documents.false_marks() != 0 && source.open_ends) {
    done.lost.push_back("that documents do not end after " +
                        detail::count_text(documents.false_marks(), "token") + " of id " + id +
                        " inside them");
  }
  detail::refuse_losses(done.lost, options);
  target.publish(options, origins, done);
  return done;
}

}  // namespace millrace::dataset

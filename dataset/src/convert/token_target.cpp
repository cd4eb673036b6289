// SPDX-License-Identifier: Apache-2.0
#include "token_target.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/convert.hpp>
#include <millrace/dataset/detail/dataset_writer.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/token_arrays.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/detail/dataset_files.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "token_source.hpp"

namespace millrace::dataset::detail {

inline constexpr std::size_t unwritten_most = 1 << 16;
inline constexpr std::int64_t most_shards =
    512;  // open at once, so that all of them appear or none

MILLRACE_INLINE formats::dtype output_type(const token_source& source,
                                           const convert_options& options) {
  if (options.to == token_format::megatron) return options.output_type.value_or(source.type);
  if (options.to == token_format::bridge) return formats::dtype::int32;
  const auto asked = options.output_type.value_or(options.to == token_format::nanogpt ||
                                                          formats::size_bytes(source.type) <= 2
                                                      ? formats::dtype::uint16
                                                      : formats::dtype::int32);
  const bool fits = asked == formats::dtype::uint16 ||
                    (asked == formats::dtype::int32 && options.to != token_format::nanogpt);
  if (!fits) {
    throw config_error("--output-dtype: " + std::string(name(options.to)) +
                       " has tokens of uint16" +
                       (options.to == token_format::nanogpt ? "" : " or uint32"));
  }
  return asked;
}

MILLRACE_INLINE std::string shard_ending(std::int64_t shard) {
  std::array<char, 24> text{};
  (void)std::snprintf(text.data(), text.size(), "_%06lld.bin", static_cast<long long>(shard));
  return text.data();
}

MILLRACE_INLINE void check_new_file(const std::filesystem::path& path, const token_source& source,
                                    bool overwrite) {
  if (!io::is_there(path, io::links::are_not_followed)) return;
  const auto identity = io::identity_of(path);
  for (const token_file& file : source.files) {
    if (identity && io::identity_of(file.path) == identity) {
      throw config_error(path.string() + " is an input; pass another --output-prefix");
    }
  }
  if (overwrite) return;
  throw config_error(path.string() +
                     " exists; pass --overwrite to replace it, or another --output-prefix");
}

MILLRACE_INLINE void check_folder(const std::filesystem::path& prefix) {
  const auto folder = io::parent_folder(prefix);
  if (io::is_folder(folder)) return;
  throw config_error(prefix.string() + ": there is no folder " + folder.string() +
                     "; create it first");
}

MILLRACE_INLINE token_target::token_target(const std::filesystem::path& prefix,
                                           const token_source& source, formats::dtype type,
                                           const convert_options& options)
    : prefix_(prefix), format_(options.to), type_(type), gzip_(options.gzip) {
  const io::dataset_paths paths(prefix);
  const std::uint64_t item = formats::size_bytes(type);
  const std::uint64_t token_bytes = static_cast<std::uint64_t>(source.tokens) * item;
  if (format_ == token_format::megatron) {
    check_new_file(paths.bin, source, options.overwrite);
    const std::uint64_t sequences =
        static_cast<std::uint64_t>(source.data ? source.data->sequence_count() : source.documents);
    dataset_.emplace(prefix,
                     writer_options{.type = type,
                                    .modes = source.data && source.data->is_multimodal(),
                                    .places = source.places.has_value(),
                                    .mask = source.has_mask(),
                                    .overwrite = options.overwrite,
                                    .bytes = token_bytes + 12 * sequences +
                                             8 * static_cast<std::uint64_t>(source.documents)});
    return;
  }

  const bool is_plain = format_ == token_format::llm_c || format_ == token_format::nanogpt;
  const std::int64_t shards =
      options.shard_tokens == 0
          ? 1
          : std::max<std::int64_t>(1, source.tokens / options.shard_tokens +
                                          (source.tokens % options.shard_tokens != 0 ? 1 : 0));
  if (options.shard_tokens != 0 && !is_plain) {
    throw config_error("--shard-tokens is for llm.c and nanogpt, whose files may end anywhere");
  }
  if (shards > most_shards) {
    throw config_error("--shard-tokens " + std::to_string(options.shard_tokens) + ": " +
                       std::to_string(source.tokens) + " tokens would need " +
                       std::to_string(shards) + " files, expected at most " +
                       std::to_string(most_shards) + "; pass a larger number");
  }
  const std::int64_t most =
      options.shard_tokens == 0 ? source.tokens : std::min(options.shard_tokens, source.tokens);
  if (format_ == token_format::llm_c && most > formats::llm_c_most_tokens) {
    throw config_error("a file of llm.c holds at most 2147483647 tokens, here are " +
                       std::to_string(most) + "; pass --shard-tokens 100000000 for several files");
  }
  if (is_plain && io::is_there(paths.idx)) {
    throw config_error(paths.idx.string() + " exists, and would seem to be the index of the new " +
                       paths.bin.filename().string() + "; pass another --output-prefix");
  }
  if (format_ == token_format::olmo && !gzip_) {
    throw config_error("convert_options::gzip is required to write .csv.gz");
  }
  check_folder(prefix);
  const auto folder = io::parent_folder(prefix);
  const std::uint64_t bytes = token_bytes + 8 * static_cast<std::uint64_t>(source.documents);
  if (const auto free = io::free_bytes_of(folder); free && *free < bytes) {
    throw error(prefix.string() + ": not enough disk space: " + std::to_string(bytes) +
                " bytes are needed, " + std::to_string(*free) + " are free; nothing was written");
  }

  const auto open = [&](std::string_view ending) {
    auto path = paths.with(ending);
    check_new_file(path, source, options.overwrite);
    return path;
  };
  if (format_ == token_format::nanoset) {
    ends_.emplace(open(".ds.index"));
    metadata_.emplace(open(".ds.metadata"));
    arrays_.emplace_back(open(".ds"));
  } else if (format_ == token_format::olmo) {
    ends_.emplace(open(".csv.gz"));
    arrays_.emplace_back(open(".npy"));
  }
  if (ends_) {
    const auto path = mask_path(arrays_.front().path(), format_);
    check_new_file(path, source, options.overwrite);
    if (source.has_mask()) {
      mask_.emplace(path);
    } else {
      old_mask_ = path;
    }
  } else {
    for (std::int64_t i = 0; i < shards; ++i) {
      arrays_.emplace_back(open(options.shard_tokens == 0 ? ".bin" : shard_ending(i)));
      if (format_ != token_format::llm_c) continue;
      const std::int64_t before = i * options.shard_tokens;
      arrays_.back().append(
          formats::encode_llm_c_header(type, std::min(most, source.tokens - before)));
    }
    if (options.shard_tokens != 0) {
      shard_bytes_ = static_cast<std::uint64_t>(options.shard_tokens) * item +
                     (format_ == token_format::llm_c ? formats::llm_c_header_bytes : 0);
    }
  }
  if (format_ == token_format::nanoset) {
    const std::string& named = options.tokenizer.empty() ? source.tokenizer : options.tokenizer;
    const std::string text =
        formats::encode_nanoset_metadata({named.empty() ? "unknown" : named, type, source.tokens});
    metadata_->append(std::as_bytes(std::span(text)));
  }
}

MILLRACE_INLINE void token_target::append(std::span<const std::byte> tokens) {
  if (dataset_) return dataset_->append_tokens(tokens);
  while (!tokens.empty()) {
    io::atomic_file* file = &arrays_[array_];
    if (shard_bytes_ != 0 && file->size_bytes() == shard_bytes_) file = &arrays_[++array_];
    const auto part =
        tokens.first(shard_bytes_ == 0 ? tokens.size()
                                       : std::min<std::uint64_t>(
                                             tokens.size(), shard_bytes_ - file->size_bytes()));
    file->append(part);
    tokens = tokens.subspan(part.size());
  }
}

MILLRACE_INLINE std::uint64_t token_target::append_copy(const io::unique_fd& from,
                                                        const std::filesystem::path& from_path,
                                                        std::uint64_t offset, std::uint64_t size) {
  std::uint64_t done = 0;
  while (done < size) {
    io::atomic_file* file = &arrays_[array_];
    if (shard_bytes_ != 0 && file->size_bytes() == shard_bytes_) file = &arrays_[++array_];
    const std::uint64_t at = file->size_bytes();
    const std::uint64_t part =
        shard_bytes_ == 0 ? size - done : std::min(size - done, shard_bytes_ - at);
    const std::uint64_t copied =
        io::copy_range(from, offset + done, from_path, file->fd(), at, file->partial_path(), part);
    file->resize(at + copied);  // tells the object its size
    done += copied;
    if (copied < part) break;
  }
  return done;
}

MILLRACE_INLINE void token_target::append_mask(const formats::bit_span& bits) {
  if (dataset_) return dataset_->append_mask(bits, 0, bits.size());
  std::vector<std::byte> bytes;
  for (std::uint64_t at = 0; at < bits.size();) {
    const std::uint64_t end = std::min(bits.size(), at + (std::uint64_t{1} << 20));
    bytes.clear();
    for (; at < end; ++at) bytes.push_back(bits[at] ? std::byte{1} : std::byte{0});
    mask_->append(bytes);
  }
}

MILLRACE_INLINE void token_target::append_end(std::int64_t end) {
  if (dataset_) {
    if (end != last_end_) {
      if (end - last_end_ > std::numeric_limits<std::int32_t>::max()) {
        throw config_error("the document from token " + std::to_string(last_end_) + " to " +
                           std::to_string(end) +
                           " has more than 2147483647 tokens, too many for a sequence");
      }
      unwritten_lengths_.push_back(static_cast<std::int32_t>(end - last_end_));
      ++sequences_;
    }
    unwritten_ends_.push_back(sequences_);
  } else if (format_ == token_format::nanoset) {
    unwritten_ends_.push_back(end);
  } else if (format_ == token_format::olmo && end != last_end_) {
    unwritten_rows_ += std::to_string(last_end_) + ',' + std::to_string(end) + '\n';
  }
  last_end_ = end;
  if (unwritten_ends_.size() >= unwritten_most || unwritten_rows_.size() >= unwritten_most) {
    flush_ends();
  }
}

MILLRACE_INLINE void token_target::flush_ends() {
  if (dataset_) {
    if (!unwritten_lengths_.empty()) dataset_->append_sequences(unwritten_lengths_);
    dataset_->append_document_ends(unwritten_ends_);
  } else if (format_ == token_format::nanoset) {
    ends_->append(std::as_bytes(std::span(unwritten_ends_)));  // uint64, and never negative
  } else if (format_ == token_format::olmo) {
    append_rows(false);
  }
  unwritten_lengths_.clear();
  unwritten_ends_.clear();
}

MILLRACE_INLINE void token_target::append_rows(bool is_last) {
  std::string compressed;
  gzip_(unwritten_rows_, is_last, compressed);
  ends_->append(std::as_bytes(std::span(compressed)));
  unwritten_rows_.clear();
}

MILLRACE_INLINE void token_target::publish(const convert_options& options,
                                           std::span<const formats::src_input> origins,
                                           conversion& done) {
  flush_ends();
  if (dataset_) {
    done.sequences = dataset_->sequence_count();
    done.sum_root = dataset_->finish(origins);
    done.mask_root = dataset_->mask_root();
    done.trained = dataset_->trained_count();
    const std::string meta = options.meta ? options.meta(done) : std::string();
    dataset_->publish(meta);
    for (const char* suffix : {".bin", ".idx", ".sum", ".src", ".mask", ".meta"}) {
      const auto path = io::dataset_paths(prefix_).with(suffix);
      if (io::is_there(path)) done.files.push_back(path);
    }
    return;
  }
  if (format_ == token_format::olmo) append_rows(true);
  std::vector<io::atomic_file*> files;
  for (auto* file : {&ends_, &metadata_, &mask_}) {
    if (*file) files.push_back(&**file);
  }
  for (io::atomic_file& file : arrays_) files.push_back(&file);
  for (io::atomic_file* file : files) file->sync();
  // An old array must not lie beside new document ends, nor an old mask beside a new array, even if
  // the process is killed here.
  if (ends_) {
    const bool had_array = io::remove_if_exists(arrays_.front().path());
    const bool had_mask = !old_mask_.empty() && io::remove_if_exists(old_mask_);
    if (had_array || had_mask) io::sync_folder(io::parent_folder(prefix_));
  }
  for (io::atomic_file* file : files) {
    done.files.push_back(file->path());
    file->commit();
  }
}

}  // namespace millrace::dataset::detail

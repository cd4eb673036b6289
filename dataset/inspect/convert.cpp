// SPDX-License-Identifier: Apache-2.0
#include <glob.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include <millrace/dataset/convert.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "command_line.hpp"
#include "dataset_tokenizer.hpp"
#include "inspect.hpp"
#include "meta.hpp"
#include "packed_rows.hpp"
#include "progress_line.hpp"
#include "run_flags.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;
namespace bio = boost::iostreams;

namespace {

constexpr const char* convert_help =
    R"(usage: inspect_dataset convert FROM... --output-prefix OUT [--to FORMAT]
           [--from FORMAT] [--eod-id N | --boundaries FILE] [--lossy] [--json]
       inspect_dataset convert PREFIX --to bridge --seq-length L
           --output-prefix OUT [--packing ALGORITHM]

Converts datasets from and to the token files of other programs. No token is
changed, added or left out. Exit codes: 0 done, 1 failed, 2 wrong flags.

  FROM...          a dataset, or files in one format, joined in this order; may
                   be quoted patterns, or a folder of packed Parquet files
  --output-prefix OUT   path of the new files, without their endings
  --to FORMAT      megatron (default): OUT.bin, OUT.idx; nanoset: OUT.ds and its
                   .index and .metadata; olmo: OUT.npy, OUT.csv.gz; llm.c or
                   nanogpt: OUT.bin. A mask stays in OUT.mask, OUT.ds.loss or
                   labels_mask_OUT.npy. bridge: see below
  --from FORMAT    needed for olmo and nanogpt, whose files begin with tokens
  --dtype T        uint16 or uint32, if the input does not tell
  --output-dtype T   type of the output (default: that of the input)
  --eod-id N       this id ends each document, and stays its last token
  --bod-id N       this id begins each document, as in files of llm.c
  --boundaries FILE   lines END or BEGIN,END that say where documents end
  --shard-tokens N   llm.c, nanogpt: write OUT_000000.bin ..., N tokens each
  --lossy          convert although FORMAT has no place for something; without
                   it, what would be lost is listed, and nothing is written
  --overwrite      replace files that exist
  --json           print one JSON object: from, to, files, dtype, documents
                   (null if unknown), empty_documents, sequences, tokens, lost,
                   sum_root; from or to bridge also rows; to bridge also left_out,
                   padding_share

Packed rows of Megatron-Bridge (NAME.parquet, NAME.pq) become a dataset: each
sequence of a row becomes a document, and loss_mask becomes OUT.mask. Padding
inside of a sequence stays; its mask is 0.

--to bridge writes packed rows for Megatron-Bridge: OUT.idx.parquet, with the
mask, and OUT.packing.json, its packing metadata. Only from one dataset.
  --seq-length L   positions of a row (packed_sequence_size); a document of n
                   tokens takes n - 1
  --packing ALGORITHM   first_fit_shuffle (default), first_fit_decreasing,
                   modified_first_fit_decreasing or one_per_row
  --seed N         of the first two (default: 0)
  --pad-documents-to N   pad each document (pad_seq_to_mult; default: 1)
  --pad-id N       id of this padding (default: the eod in PREFIX.meta)
  --compression zstd|none   (default: zstd)

  inspect_dataset convert data/web --to nanoset --output-prefix web --lossy
  inspect_dataset convert 'web_*.bin' --bod-id 50256 --output-prefix web
  inspect_dataset convert chat --to bridge --seq-length 4096 --lossy \
      --output-prefix packed
  inspect_dataset convert packed.idx.parquet --lossy --output-prefix chat
)";

/// @throws usage_error  `text` is not the name of a format
dataset::token_format format_of(const std::string& flag, const std::string& text) {
  if (const auto format = dataset::token_format_of(text)) return *format;
  throw misuse(
      fmt::format("{} {}: expected megatron, nanoset, olmo, llm.c, nanogpt or bridge", flag, text),
      convert_help);
}

/// @throws usage_error  `text` is not the name of a type of integers
formats::dtype type_of(const std::string& flag, const std::string& text) {
  if (text == "uint32") return formats::dtype::int32;  // ids are below 2^31
  for (const auto type : {formats::dtype::uint16, formats::dtype::int32, formats::dtype::int64,
                          formats::dtype::uint8, formats::dtype::int8, formats::dtype::int16}) {
    if (formats::name(type) == text) return type;
  }
  throw misuse(fmt::format("{} {}: expected uint16 or uint32{}", flag, text,
                           flag == "--dtype" ? "" : ", or another type of integers"),
               convert_help);
}

/// A text file, decompressed if it is compressed with gzip.
class text_stream : public bio::filtering_istream {
 public:
  explicit text_stream(const std::filesystem::path& path) {
    bio::file_source file(path.string(), std::ios::binary);
    char first = 0;
    if (file.read(&first, 1) == 1 && first == 0x1f) push(bio::gzip_decompressor());
    file.seek(0, std::ios::beg);
    push(file);
  }
};

/// Compresses a text that comes in parts.
class gzip_stream {
 public:
  gzip_stream() {
    stream_.push(bio::gzip_compressor());
    stream_.push(bio::back_inserter(compressed_));
  }
  void append(std::string_view text, bool is_last, std::string& out) {
    stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (is_last) stream_.reset();
    out += std::exchange(compressed_, {});
  }

 private:
  std::string compressed_;
  bio::filtering_ostream stream_;
};

std::vector<std::filesystem::path> files_of(const std::vector<std::string>& words) {
  std::vector<std::filesystem::path> files;
  for (const std::string& word : words) {
    std::error_code ignored;
    const bool is_prefix = std::filesystem::exists(word + ".idx", ignored);
    const bool is_there = is_prefix || std::filesystem::exists(word, ignored);
    if (!is_there && word.find_first_of("*?[") != std::string::npos) {
      ::glob_t found{};
      const int code = ::glob(word.c_str(), 0, nullptr, &found);  // sorted
      const std::unique_ptr<::glob_t, decltype(&::globfree)> owned(&found, ::globfree);
      if (code != 0) throw config_error(word + ": no file has a name like this");
      files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
      continue;
    }
    if (!is_prefix && std::filesystem::is_directory(word, ignored)) {
      const auto found = packed_rows_in(word);
      files.insert(files.end(), found.begin(), found.end());
      continue;
    }
    if (!is_there) suggest_dataset(word);
    files.emplace_back(word);
  }
  return files;
}

void compress_page(std::span<const std::byte> page, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  out.resize(begin + ZSTD_compressBound(page.size()));
  const std::size_t size =
      ZSTD_compress(out.data() + begin, out.size() - begin, page.data(), page.size(), 3);
  if (ZSTD_isError(size) != 0) throw error(std::string("zstd: ") + ZSTD_getErrorName(size));
  out.resize(begin + size);
}

/// The PREFIX.meta of a dataset that was made from arrays. Nobody knows its tokenizer.
formats::dataset_meta meta_of_arrays(const dataset::conversion& done,
                                     std::optional<std::int64_t> eod) {
  formats::dataset_meta meta;
  meta.type = done.type;
  meta.append_eod = done.ends_with_eod;
  meta.options.emplace_back("converted_from", dataset::name(done.from));
  if (!done.tokenizer.empty()) meta.options.emplace_back("tokenizer", done.tokenizer);
  meta.tokenizer.type = unknown_tokenizer;
  meta.tokenizer.vocab_size = done.type == formats::dtype::uint16 ? 1 << 16 : std::int64_t{1} << 31;
  if (eod && *eod < meta.tokenizer.vocab_size) meta.tokenizer.eod = eod;
  for (const dataset::converted_input& input : done.inputs) {
    meta.inputs.push_back({.path = input.path,
                           .begin = 0,
                           .text_bytes = input.bytes,
                           .crc32c = input.crc32c,
                           .lines = input.documents});
  }
  meta.counts.documents = meta.counts.lines = done.documents;
  meta.counts.empty_documents = done.empty_documents;
  meta.counts.sequences = done.sequences;
  meta.counts.tokens = done.tokens;
  return meta;
}

std::string type_name(const dataset::conversion& done) {
  const bool is_array =
      done.to != dataset::token_format::megatron && done.to != dataset::token_format::bridge;
  return std::string(is_array && done.type == formats::dtype::int32 ? "uint32"
                                                                    : formats::name(done.type));
}

/// Sets what depends on the PREFIX.meta of a dataset that is converted, and how the new one is
/// made. Returns the PREFIX.meta.
std::optional<formats::dataset_meta> describe_tokenizer(
    const std::vector<std::filesystem::path>& files, dataset::convert_options& options) {
  std::optional<formats::dataset_meta> old;
  const auto from = options.from ? options.from : dataset::recognize(files.front());
  const bool from_dataset = from == dataset::token_format::megatron;
  if (from_dataset) {
    auto prefix = files.front();
    if (prefix.extension() == ".idx" || prefix.extension() == ".bin") prefix.replace_extension();
    old = find_meta(dataset::indexed_dataset(prefix));
  }
  if (old) {
    options.tokenizer = old->tokenizer.type;
    for (const auto& [name, value] : old->options) {
      if (name == "tokenizer") options.tokenizer = value;
    }
  }
  options.meta = [old, from_dataset, eod = options.eod](const dataset::conversion& done) {
    if (from_dataset && !old) return std::string();
    formats::dataset_meta meta = old ? *old : meta_of_arrays(done, eod);
    meta.type = done.type;
    meta.bin_bytes = static_cast<std::uint64_t>(done.tokens) * formats::size_bytes(done.type);
    meta.sum_version = formats::sum_version;
    meta.sum_root = done.sum_root;
    meta.mask.reset();
    if (!done.mask_root.empty()) meta.mask = {.trained = done.trained, .root = done.mask_root};
    return formats::to_json(meta);
  };
  return old;
}

constexpr const char* packing_words[] = {"packing", "compression"};
constexpr const char* packing_numbers[] = {"seq-length", "seed", "pad-documents-to", "pad-id"};

void refuse_packing_flags(const command_line& line) {
  const auto refuse = [&](const char* flag) {
    if (line.values.count(flag) == 0) return;
    throw misuse(fmt::format("--{} requires --to bridge", flag), convert_help);
  };
  for (const char* flag : packing_words) refuse(flag);
  for (const char* flag : packing_numbers) refuse(flag);
}

dataset::bridge_packing packing_of(const command_line& line,
                                   const std::optional<formats::dataset_meta>& meta) {
  dataset::bridge_packing packing;
  packing.seq_len = count_of(line, "seq-length", 1, convert_help).value_or(0);
  if (const auto text = line.find<std::string>("packing")) {
    const auto algorithm = dataset::packing_algorithm_of(*text);
    if (!algorithm) {
      throw misuse(fmt::format("--packing '{}': expected first_fit_shuffle, first_fit_decreasing, "
                               "modified_first_fit_decreasing or one_per_row",
                               *text),
                   convert_help);
    }
    packing.algorithm = *algorithm;
  }
  const std::int64_t seed = count_of(line, "seed", 0, convert_help).value_or(0);
  if (seed > std::numeric_limits<std::uint32_t>::max()) {
    throw misuse(fmt::format("--seed {}: expected 0 to 4294967295", seed), convert_help);
  }
  packing.seed = static_cast<std::uint32_t>(seed);
  packing.pad_documents_to = count_of(line, "pad-documents-to", 1, convert_help).value_or(1);
  packing.pad = count_of(line, "pad-id", 0, convert_help);
  if (!packing.pad && meta) packing.pad = meta->tokenizer.eod;
  const std::string compression = line.find<std::string>("compression").value_or("zstd");
  if (compression != "zstd" && compression != "none") {
    throw misuse(fmt::format("--compression '{}': expected zstd or none", compression),
                 convert_help);
  }
  if (compression == "zstd") packing.zstd = compress_page;
  return packing;
}

void print(const dataset::conversion& done, bool is_known, std::int64_t seq_len, bool as_json) {
  const bool is_dataset = done.to == dataset::token_format::megatron;
  if (as_json) {
    formats::json_writer json;
    json.open('{').key("from").value(dataset::name(done.from));
    json.key("to").value(dataset::name(done.to)).key("files").open('[');
    for (const auto& file : done.files) json.value(file.native());
    json.close(']').key("dtype").value(std::string_view(type_name(done))).key("documents");
    is_known ? json.value(done.documents) : json.null();
    json.key("empty_documents");
    is_known ? json.value(done.empty_documents) : json.null();
    json.key("sequences");
    is_dataset ? json.value(done.sequences) : json.null();
    json.key("tokens").value(done.tokens).key("lost").open('[');
    for (const std::string& each : done.lost) json.value(each);
    json.close(']').key("sum_root");
    is_dataset ? json.value(done.sum_root) : json.null();
    if (done.to == dataset::token_format::bridge) {
      json.key("rows").value(done.rows).key("left_out").value(done.left_out);
      json.key("padding_share").value(done.padding_share(seq_len));
    }
    if (done.from == dataset::token_format::bridge) json.key("rows").value(done.rows);
    command::answer(json.close('}').text() + '\n');
    return;
  }
  std::string names = done.files.front().string();
  if (done.files.size() > 5) {
    names += fmt::format(" and {} more",
                         grouped(static_cast<std::int64_t>(done.files.size()) - 1, "file"));
  } else {
    for (std::size_t i = 1; i < done.files.size(); ++i) names += ", " + done.files[i].string();
  }
  if (done.to == dataset::token_format::bridge) {
    command::answer(fmt::format("{}: {} in {}, {:.2f} % padding, from megatron\n", names,
                                grouped(done.documents, "document"), grouped(done.rows, "row"),
                                100 * done.padding_share(seq_len)));
    return;
  }
  command::answer(fmt::format("{}: {}{} of {}, from {}\n", names,
                              is_known ? grouped(done.documents, "document") + ", " : std::string(),
                              grouped(done.tokens, "token"), type_name(done),
                              dataset::name(done.from)));
}

}  // namespace

int convert(const arguments& args) {
  po::options_description own;
  for (const char* flag : {"output-prefix", "to", "from", "dtype", "output-dtype", "boundaries"}) {
    own.add_options()(flag, po::value<std::string>());
  }
  for (const char* flag : packing_words) own.add_options()(flag, po::value<std::string>());
  for (const char* flag : {"eod-id", "bod-id", "shard-tokens"}) {
    own.add_options()(flag, po::value<std::int64_t>());
  }
  for (const char* flag : packing_numbers) own.add_options()(flag, po::value<std::int64_t>());
  for (const char* flag : {"lossy", "overwrite"}) own.add_options()(flag, po::bool_switch());
  const auto line = parse_run_options(args, own, convert_help);
  if (!line) return command::exit_done;
  const auto words = line->find<std::vector<std::string>>("prefix");
  if (!words) throw misuse("FROM is required: a dataset, or files to convert", convert_help);
  const auto output = line->find<std::string>("output-prefix");
  if (!output || output->empty()) {
    throw misuse("--output-prefix is required: the path of the new files, without their endings",
                 convert_help);
  }
  dataset::convert_options options;
  if (const auto text = line->find<std::string>("from")) options.from = format_of("--from", *text);
  if (const auto text = line->find<std::string>("to")) options.to = format_of("--to", *text);
  if (const auto text = line->find<std::string>("dtype")) options.type = type_of("--dtype", *text);
  if (const auto text = line->find<std::string>("output-dtype")) {
    options.output_type = type_of("--output-dtype", *text);
  }
  options.eod = count_of(*line, "eod-id", 0, convert_help);
  options.bod = count_of(*line, "bod-id", 0, convert_help);
  options.boundaries = line->find<std::string>("boundaries").value_or("");
  if ((options.eod || options.bod) && !options.boundaries.empty()) {
    throw misuse("--boundaries cannot be combined with --eod-id or --bod-id", convert_help);
  }
  options.shard_tokens = count_of(*line, "shard-tokens", 1, convert_help).value_or(0);
  options.lossy = line->values["lossy"].as<bool>();
  options.overwrite = line->values["overwrite"].as<bool>();
  options.open_text = [](const std::filesystem::path& path) -> std::unique_ptr<std::istream> {
    return std::make_unique<text_stream>(path);
  };
  options.open_packed_rows = open_packed_rows;
  options.gzip = [stream = std::make_shared<gzip_stream>()](std::string_view text, bool is_last,
                                                            std::string& out) {
    stream->append(text, is_last, out);
  };
  const auto files = files_of(*words);
  const auto meta = describe_tokenizer(files, options);
  if (options.to == dataset::token_format::bridge) {
    options.packing = packing_of(*line, meta);
  } else {
    refuse_packing_flags(*line);
  }

  std::optional<progress_line> progress;
  options.progress = [&](std::int64_t tokens, std::int64_t all_tokens) {
    if (!progress) progress.emplace("converted", "token", all_tokens);
    progress->show(tokens);
  };
  const dataset::conversion done = dataset::convert(files, *output, options);
  progress.reset();
  for (const std::string& each : done.lost) {
    command::tell(fmt::format("{}: lost: {}\n", program_name, command::one_line(each)));
  }
  print(done, done.documents != 0 || done.tokens == 0, options.packing.seq_len, line->json);
  return command::exit_done;
}

}  // namespace millrace::inspect

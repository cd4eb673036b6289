// SPDX-License-Identifier: Apache-2.0
#include "file_advice.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

namespace fs = std::filesystem;

/// The kind of a tokenizer's file, as detected from its first bytes.
enum class file_kind : std::uint8_t {
  unknown,
  tokenizer_json,    // Hugging Face's tokenizer.json
  tokenizer_config,  // tokenizer_config.json
  sentencepiece,     // a .model
  ranks,             // .tiktoken
  megatron_vocab,    // .vocab.json of TikTokenizer
  vocab_json,        // GPT-2's vocab.json
  merges,            // merges.txt
  word_pieces,       // vocab.txt
  json_lines,        // text to tokenize
};

constexpr std::size_t looked_at_bytes = std::size_t{64} << 10;

std::string start_of(const fs::path& path) {
  std::string start(looked_at_bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  return start;
}

bool is_word_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == text.npos;
}

constexpr std::string_view decimal_digits = "0123456789";

// True for a line such as "IQ== 0".
bool is_rank_line(std::string_view line) {
  constexpr std::string_view base64 =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  const std::size_t space = line.find(' ');
  if (space == line.npos) return false;
  return is_word_of(line.substr(0, space), base64) &&
         is_word_of(line.substr(space + 1), decimal_digits);
}

// True if the text looks like JSON Lines: its first line is an object, and a second object follows.
// A text of one line also counts if it has the key `text`. A tokenizer's JSON file is one object
// that takes many lines or lacks this key.
bool is_json_lines(std::string_view text) {
  const std::size_t end = text.find('\n');
  const std::size_t last = text.find_last_not_of(" \t\r\n", end);
  if (text.front() != '{' || last == text.npos || text[last] != '}') return false;
  const std::size_t next = text.find_first_not_of(" \t\r\n", last + 1);
  if (next != text.npos) return text[next] == '{';
  return text.find("\"text\":") != text.npos;
}

file_kind kind_of_json(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
  if (text.front() == '[') {
    return has("\"token_bytes\"") ? file_kind::megatron_vocab : file_kind::unknown;
  }
  if (is_json_lines(text)) return file_kind::json_lines;
  if (has("\"added_tokens\"") || has("\"pre_tokenizer\"") || has("\"post_processor\"")) {
    return file_kind::tokenizer_json;
  }
  if (has("\"tokenizer_class\"") || has("\"added_tokens_decoder\"")) {
    return file_kind::tokenizer_config;
  }
  // Recognize the beginning of a vocab.json, such as `{"!": 0,`.
  const std::size_t colon = text.find("\":");
  const std::size_t value = colon == text.npos ? colon : text.find_first_not_of(' ', colon + 2);
  const bool number = value != text.npos && decimal_digits.find(text[value]) != decimal_digits.npos;
  return number ? file_kind::vocab_json : file_kind::unknown;
}

file_kind kind_of(const fs::path& path) {
  const std::string start = start_of(path);
  std::string_view text = start;
  if (const std::size_t first = text.find_first_not_of(" \t\r\n");
      first != text.npos && (text[first] == '{' || text[first] == '[')) {
    return kind_of_json(text.substr(first));
  }
  // The first field of a SentencePiece model is a piece. This field consists of a tag, a length,
  // another tag, another length, and the text of the piece. Both tags are the byte `\n`.
  if (text.starts_with('\n') && text.find('\n', 1) == 2) {
    const std::string_view pieces = text.substr(0, 64);
    for (const char* control : {"<unk>", "<s>", "<pad>"}) {
      if (pieces.find(control) != text.npos) return file_kind::sentencepiece;
    }
  }
  const std::string_view line = text.substr(0, text.find('\n'));
  if (is_rank_line(line)) return file_kind::ranks;
  if (line.starts_with("#version")) return file_kind::merges;
  if (text.find("[UNK]\n") != text.npos || text.find("[PAD]\n") != text.npos) {
    return file_kind::word_pieces;
  }
  return file_kind::unknown;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The kind of file that `--tokenizer-model` must name for this tokenizer type.
std::string model_of(std::string_view type) {
  if (type == "HuggingFaceTokenizer") return "a tokenizer.json of Hugging Face";
  if (type == "TikTokenizer") return "a .tiktoken file or a .vocab.json of Megatron";
  return "a SentencePiece .model file";
}

/// A sentence that names the type and the flag for a file of this kind.
std::string use_of(file_kind kind, const fs::path& path) {
  const std::string name = path.string();
  const auto model = [&](const char* what, const char* type, const char* more = "") {
    return name + ": this is " + what + "; use --tokenizer-type " + type + " --tokenizer-model " +
           name + more;
  };
  switch (kind) {
    case file_kind::tokenizer_json:
      return model("a tokenizer.json of Hugging Face", "HuggingFaceTokenizer");
    case file_kind::tokenizer_config:
      return name +
             ": this is a tokenizer_config.json; use --tokenizer-type HuggingFaceTokenizer with "
             "its folder as --tokenizer-model";
    case file_kind::sentencepiece:
      return model("a SentencePiece model", "SentencePieceTokenizer");
    case file_kind::ranks:
      return model("a .tiktoken file of ranks", "TikTokenizer",
                   " --tiktoken-pattern NAME, e.g. cl100k or llama3");
    case file_kind::megatron_vocab:
      return model("a vocab.json for Megatron's TikTokenizer", "TikTokenizer");
    case file_kind::vocab_json:
      return name + ": this is a vocab.json; use --tokenizer-type GPT2BPETokenizer --vocab-file " +
             name + " --merge-file with the merges.txt that belongs to it";
    case file_kind::merges:
      return name +
             ": this is a merges.txt; use --tokenizer-type GPT2BPETokenizer with a vocab.json as "
             "--vocab-file and --merge-file " +
             name;
    case file_kind::word_pieces:
      return name +
             ": this is a vocab.txt of word pieces; use --tokenizer-type BertWordPieceLowerCase "
             "(or BertWordPieceCase) --vocab-file " +
             name;
    case file_kind::json_lines:
      return name + ": this is a file of JSON lines, not a tokenizer's file";
    case file_kind::unknown:
      break;
  }
  return "";
}

bool is_sentencepiece(std::string_view type) {
  return type == "SentencePieceTokenizer" || type == "GPTSentencePieceTokenizer" ||
         type == "Llama2Tokenizer";
}

bool takes_model(std::string_view type, file_kind kind) {
  if (is_sentencepiece(type)) return kind == file_kind::sentencepiece;
  if (type == "HuggingFaceTokenizer") return kind == file_kind::tokenizer_json;
  return kind == file_kind::ranks || kind == file_kind::megatron_vocab;  // TikTokenizer
}

/// A sentence that names the tokenizer type and the flags for the files in this folder.
std::string use_of_folder(const fs::path& folder, std::string_view type) {
  const auto in = [&](const char* name) { return folder / name; };
  const std::string start = folder.string() + " is a folder";
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (!is_there(in(name))) continue;
    const bool first_choice = is_sentencepiece(type) || !is_there(in("tokenizer.json"));
    if (first_choice) return start + "; " + use_of(kind_of(in(name)), in(name));
  }
  if (is_there(in("tokenizer.json"))) {
    if (type == "HuggingFaceTokenizer") return "";
    return start + " with a tokenizer.json; use --tokenizer-type HuggingFaceTokenizer " +
           "--tokenizer-model " + folder.string();
  }
  if (is_there(in("vocab.json")) && is_there(in("merges.txt"))) {
    return start + "; use --tokenizer-type GPT2BPETokenizer --vocab-file " +
           in("vocab.json").string() + " --merge-file " + in("merges.txt").string();
  }
  if (is_there(in("vocab.txt"))) {
    return start + "; " + use_of(file_kind::word_pieces, in("vocab.txt"));
  }
  return start + " without a tokenizer.json, tokenizer.model, vocab.json or vocab.txt";
}

// True for names such as "meta-llama/Llama-3.1-8B" or "gpt2", which Hugging Face's hub uses for
// models.
bool is_hub_name(const std::string& name) {
  const auto slashes = std::count(name.begin(), name.end(), '/');
  return slashes <= 1 && name.front() != '/' && name.front() != '.' && name.back() != '/' &&
         is_word_of(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./") &&
         (slashes == 1 || name.find('.') == name.npos);
}

/// The cache in which Hugging Face's programs store downloads.
std::optional<fs::path> hub_cache() {
  const auto variable = [](const char* name) -> std::optional<fs::path> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return fs::path(value);
  };
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (auto folder = variable(name)) return folder;
  }
  if (const auto home = variable("HF_HOME")) return *home / "hub";
  if (const auto cache = variable("XDG_CACHE_HOME")) return *cache / "huggingface/hub";
  if (const auto home = variable("HOME")) return *home / ".cache/huggingface/hub";
  return std::nullopt;
}

/// Returns the folder of the model version that `refs/main` names. If that folder does not exist,
/// returns the folder of the version whose name sorts last.
std::optional<fs::path> cached_snapshot(const fs::path& cache, std::string name) {
  if (const std::size_t slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  const fs::path model = cache / ("models--" + name);
  std::string revision;
  std::ifstream(model / "refs/main") >> revision;
  if (!revision.empty() && is_folder(model / "snapshots" / revision)) {
    return model / "snapshots" / revision;
  }
  std::vector<fs::path> found;
  std::error_code problem;
  for (fs::directory_iterator each(model / "snapshots", problem), end; !problem && each != end;
       each.increment(problem)) {
    if (is_folder(each->path())) found.push_back(each->path());
  }
  if (found.empty()) return std::nullopt;
  return *std::ranges::max_element(found);
}

std::string use_of_hub_name(const std::string& name, std::string_view type) {
  std::string text = "--tokenizer-model " + name +
                     ": there is no such file or folder, and models of the Hugging Face hub are "
                     "not downloaded";
  const auto cache = hub_cache();
  const auto snapshot = cache ? cached_snapshot(*cache, name) : std::nullopt;
  if (!snapshot) {
    return text + (cache ? ", nor is it in the cache " + cache->string() : "") +
           "; download its tokenizer files, and pass their folder";
  }
  if (type == "HuggingFaceTokenizer" && is_there(*snapshot / "tokenizer.json")) {
    return text + "; it is in the cache, so use --tokenizer-model " + snapshot->string();
  }
  return text + "; but it is in the cache: " + use_of_folder(*snapshot, type);
}

std::string advice_on_model(const fs::path& path, std::string_view type) {
  if (!is_there(path))
    return is_hub_name(path.string()) ? use_of_hub_name(path.string(), type) : "";
  if (is_folder(path)) return use_of_folder(path, type);
  const file_kind kind = kind_of(path);
  if (kind == file_kind::json_lines) {
    return path.string() + ": this is a file of JSON lines, but --tokenizer-type " +
           std::string(type) + " requires " + model_of(type);
  }
  return takes_model(type, kind) ? "" : use_of(kind, path);
}

/// Advice on --vocab-file and --merge-file. Each of these flags takes one kind of file.
std::string advice_on_file(const fs::path& path, const char* flag, const char* name,
                           file_kind wanted, std::string_view type) {
  if (path.empty() || !is_there(path)) return "";
  if (is_folder(path)) {
    if (!is_there(path / name)) return use_of_folder(path, type);
    return path.string() + " is a folder; pass the file: " + flag + ' ' + (path / name).string();
  }
  const file_kind kind = kind_of(path);
  return kind == wanted ? "" : use_of(kind, path);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string file_advice(const tokenizer_options& options) {
  if (!options.model.empty()) return advice_on_model(options.model, options.type);
  if (options.type == "GPT2BPETokenizer") {
    std::string vocab = advice_on_file(options.vocab_file, "--vocab-file", "vocab.json",
                                       file_kind::vocab_json, options.type);
    if (!vocab.empty()) return vocab;
    return advice_on_file(options.merge_file, "--merge-file", "merges.txt", file_kind::merges,
                          options.type);
  }
  return advice_on_file(options.vocab_file, "--vocab-file", "vocab.txt", file_kind::word_pieces,
                        options.type);
}

std::string not_the_model(const tokenizer_options& options) {
  if (options.model.empty() || !is_there(options.model) || is_folder(options.model)) return "";
  if (kind_of(options.model) != file_kind::unknown) return "";
  return "this is not " + model_of(options.type) + ", which --tokenizer-type " + options.type +
         " requires";
}

std::string_view likely_type(std::string_view typed) {
  // Short names of the types. Each name is also accepted with "tokenizer" appended.
  struct nickname {
    std::string_view name;
    std::string_view type;
  };
  constexpr std::array nicknames = {
      nickname{"bytelevel", "ByteLevelTokenizer"},
      nickname{"bytes", "ByteLevelTokenizer"},
      nickname{"null", "NullTokenizer"},
      nickname{"gpt2", "GPT2BPETokenizer"},
      nickname{"gpt2bpe", "GPT2BPETokenizer"},
      nickname{"sentencepiece", "SentencePieceTokenizer"},
      nickname{"gptsentencepiece", "GPTSentencePieceTokenizer"},
      nickname{"llama2", "Llama2Tokenizer"},
      nickname{"llama3", "HuggingFaceTokenizer"},
      nickname{"huggingface", "HuggingFaceTokenizer"},
      nickname{"hf", "HuggingFaceTokenizer"},
      nickname{"autotokenizer", "HuggingFaceTokenizer"},
      nickname{"bertwordpiecelowercase", "BertWordPieceLowerCase"},
      nickname{"bertwordpiececase", "BertWordPieceCase"},
      nickname{"bert", "BertWordPieceLowerCase"},
      nickname{"tik", "TikTokenizer"},
      nickname{"tiktoken", "TikTokenizer"},
  };
  std::string wanted;
  for (const char c : lower(typed)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) wanted += c;
  }
  for (const nickname& each : nicknames) {
    if (wanted == each.name || wanted == lower(each.type)) return each.type;
    if (wanted == std::string(each.name) + "tokenizer") return each.type;
  }
  return {};
}

}  // namespace millrace::tokenizer::detail

// SPDX-License-Identifier: Apache-2.0
#include <millrace/tokenizer/tokenizer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <millrace/error.hpp>

#include "arrays.hpp"
#include "bindings.hpp"

namespace millrace::python {
namespace {

namespace fs = std::filesystem;

/// The class Tokenizer. An encoder serves one thread at a time, so each call takes one of those
/// that no other call uses.
class tokenizer {
 public:
  explicit tokenizer(const millrace::tokenizer::tokenizer_options& options)
      : options_(options), made_(millrace::tokenizer::make_tokenizer(options)) {
    for (fs::path* const path :
         {&options_.model, &options_.vocab_file, &options_.merge_file, &options_.cache}) {
      if (!path->empty()) *path = fs::absolute(*path);  // another process may be elsewhere
    }
  }

  const millrace::tokenizer::tokenizer& operator*() const noexcept { return *made_; }
  const millrace::tokenizer::tokenizer* operator->() const noexcept { return made_.get(); }
  const millrace::tokenizer::tokenizer_options& options() const noexcept { return options_; }

  std::int64_t eod() const {
    if (const auto id = made_->eod()) return *id;
    throw config_error(millrace::tokenizer::missing_eod(options_));
  }

  /// Calls use(encoder). Any number of threads may call it.
  template <class Use>
  void encode(const Use& use) const {
    std::unique_ptr<millrace::tokenizer::encoder> encoder;
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        encoder = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!encoder) encoder = made_->make_encoder();
    use(*encoder);  // an encoder that throws is dropped
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < most_idle_) idle_.push_back(std::move(encoder));
  }

 private:
  // An encoder keeps up to 64 MiB of words. So no more of them are kept than there are cores.
  std::size_t most_idle_ = std::max(1U, std::thread::hardware_concurrency());
  millrace::tokenizer::tokenizer_options options_;
  std::unique_ptr<millrace::tokenizer::tokenizer> made_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<millrace::tokenizer::encoder>> idle_;
};

/// @throws config_error  the text cannot be encoded; `index` is its place in a list, or -1
void append_ids(millrace::tokenizer::encoder& encoder, std::string_view text, std::int64_t index,
                millrace::tokenizer::id_buffer& ids) {
  const auto fault = encoder.encode(text, ids);
  if (!fault) return;
  throw config_error((index < 0 ? std::string("the text") : "text " + std::to_string(index)) +
                     " cannot be encoded: " + fault->what + " (at byte " +
                     std::to_string(fault->offset_bytes) + ")");
}

nb::object int32_array(const std::shared_ptr<millrace::tokenizer::id_buffer>& ids) {
  const std::span<const std::int32_t> all = ids->ids();
  return make_array(array_output::numpy,
                    {.data = all.data(),
                     .type = nb::dtype<std::int32_t>(),
                     .shape = {all.size()},
                     .dimensions = 1},
                    ids);
}

/// The UTF-8 of a str. It belongs to the str.
std::string_view utf8_of(nb::handle text, std::int64_t index) {
  Py_ssize_t size = 0;
  const char* const bytes =
      PyUnicode_Check(text.ptr()) ? PyUnicode_AsUTF8AndSize(text.ptr(), &size) : nullptr;
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
  const std::string which = index < 0 ? "text" : "text " + std::to_string(index);
  if (!PyErr_Occurred()) throw nb::type_error((which + " is not a str").c_str());
  PyErr_Clear();
  throw config_error(which + " contains a lone surrogate, which no UTF-8 text can contain");
}

nb::object encode(const tokenizer& with, nb::str text) {
  const std::string_view bytes = utf8_of(text, -1);
  auto ids = std::make_shared<millrace::tokenizer::id_buffer>();
  {
    const without_gil released;
    with.encode([&](auto& encoder) { append_ids(encoder, bytes, -1, *ids); });
  }
  return int32_array(ids);
}

nb::tuple encode_with_offsets(const tokenizer& with, nb::str text) {
  const std::string_view bytes = utf8_of(text, -1);
  auto ids = std::make_shared<millrace::tokenizer::id_buffer>();
  auto spans = std::make_shared<std::vector<millrace::tokenizer::byte_span>>();
  {
    const without_gil released;
    with.encode([&](auto& encoder) {
      const auto fault = encoder.encode_with_offsets(bytes, *ids, *spans);
      if (!fault) return;
      throw config_error("the text has no offsets: " + fault->what + " (at byte " +
                         std::to_string(fault->offset_bytes) + ")");
    });
  }
  static_assert(sizeof(millrace::tokenizer::byte_span) == 2 * sizeof(std::int64_t));
  const nb::object places = make_array(array_output::numpy,
                                       {.data = spans->data(),
                                        .type = nb::dtype<std::int64_t>(),
                                        .shape = {spans->size(), 2},
                                        .dimensions = 2},
                                       spans);
  return nb::make_tuple(int32_array(ids), places);
}

/// The texts [begin, end) of a batch, the ids of these, and where each text's ids end.
struct share {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t bytes = 0;
  millrace::tokenizer::id_buffer ids;
  std::vector<std::int64_t> ends = {};
};

/// Divides texts into at most `threads` shares of about equally many bytes, none of which is small.
std::vector<share> shares_of(const std::vector<std::string_view>& texts, std::size_t threads) {
  constexpr std::size_t worth_a_thread = std::size_t{256} << 10;  // bytes
  std::size_t bytes = 0;
  for (const std::string_view text : texts) bytes += text.size();
  const std::size_t count = std::clamp<std::size_t>(bytes / worth_a_thread, 1, threads);
  std::vector<share> shares(count);
  std::size_t text = 0;
  std::size_t before = 0;  // bytes of the texts before `text`
  for (std::size_t i = 0; i < count; ++i) {
    shares[i].begin = text;
    const bool is_last = i + 1 == count;
    while (text < texts.size() && (is_last || before * count < bytes * (i + 1))) {
      shares[i].bytes += texts[text].size();
      before += texts[text++].size();
    }
    shares[i].end = text;
  }
  return shares;
}

void encode_share(const tokenizer& with, const std::vector<std::string_view>& texts, share& mine) {
  with.encode([&](auto& encoder) {
    mine.ends.reserve(mine.end - mine.begin);
    // Room for the ids of almost any text, so that they are not copied as they grow. Memory that is
    // not written takes only addresses.
    mine.ids.room(mine.bytes / 2 + 1024);
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      append_ids(encoder, texts[i], static_cast<std::int64_t>(i), mine.ids);
      mine.ends.push_back(static_cast<std::int64_t>(mine.ids.ids().size()));
    }
  });
}

/// Encodes the shares, one thread each.
/// @throws config_error  the first text, by its index, that cannot be encoded
void encode_shares(const tokenizer& with, const std::vector<std::string_view>& texts,
                   std::vector<share>& shares) {
  std::vector<std::exception_ptr> errors(shares.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < shares.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          encode_share(with, texts, shares[i]);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    }
    try {
      encode_share(with, texts, shares[0]);
    } catch (...) {
      errors[0] = std::current_exception();
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::size_t threads_of(std::optional<std::int64_t> threads) {
  if (threads && *threads < 1) {
    throw config_error("threads is " + std::to_string(*threads) + ", expected 1 or more");
  }
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return threads ? static_cast<std::size_t>(*threads) : cores;
}

nb::tuple encode_batch(const tokenizer& with, const nb::object& texts,
                       std::optional<std::int64_t> threads) {
  if (PyUnicode_Check(texts.ptr()) || PyBytes_Check(texts.ptr())) {
    throw nb::type_error("texts is one text, expected a list of str; encode() takes one text");
  }
  // A list of our own keeps the strings alive while other threads may change the caller's.
  const nb::list kept(texts);
  std::vector<std::string_view> views;
  views.reserve(kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    views.push_back(utf8_of(kept[i], static_cast<std::int64_t>(i)));
  }
  std::vector<share> shares = shares_of(views, threads_of(threads));
  auto ids = std::make_shared<millrace::tokenizer::id_buffer>();
  std::vector<std::int64_t> offsets = {0};
  offsets.reserve(views.size() + 1);
  {
    const without_gil released;
    encode_shares(with, views, shares);
    *ids = std::move(shares[0].ids);
    for (share& each : shares) {
      const std::int64_t before = offsets.back();
      for (const std::int64_t end : each.ends) offsets.push_back(before + end);
      if (&each != &shares[0]) ids->append(each.ids.ids());
      each = share();
    }
  }
  return nb::make_tuple(int32_array(ids), copied_array(std::span<const std::int64_t>(offsets)));
}

/// @throws nb::type_error, config_error  they are no integers, or do not fit into 64 bits
std::vector<std::int64_t> ids_of(nb::handle ids) {
  std::vector<std::int64_t> list;
  const nb::object array = nb::module_::import_("numpy").attr("asarray")(ids);
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (nb::cast<std::int64_t>(array.attr("size")) > 0 && kind != "i" && kind != "u") {
    throw nb::type_error("ids are no integers");
  }
  for (nb::handle id : array.attr("ravel")().attr("tolist")()) {
    if (!nb::try_cast(id, list.emplace_back())) {
      throw config_error("an id is " + nb::cast<std::string>(nb::str(id)) +
                         ", which does not fit into 64 bits");
    }
  }
  return list;
}

std::unique_ptr<tokenizer> from_folder(const fs::path& folder, const std::string& eod_token,
                                       const std::optional<fs::path>& cache) {
  if (!fs::is_directory(folder)) {
    throw config_error(folder.string() +
                       " is not a folder: expected a folder with a tokenizer.json, "
                       "such as one that save_pretrained() has written. Names of a model hub are "
                       "not downloaded");
  }
  millrace::tokenizer::tokenizer_options options;
  options.type = "HuggingFaceTokenizer";
  options.model = folder;
  options.eod_token = eod_token;
  options.cache = cache.value_or("");
  return std::make_unique<tokenizer>(options);
}

/// The tokenizer type that a file's name says, or an empty string.
std::string type_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with(".vocab.json") || name.ends_with(".tiktoken")) return "TikTokenizer";
  if (name == "vocab.json") return "GPT2BPETokenizer";
  if (name.ends_with(".json")) return "HuggingFaceTokenizer";
  if (name.ends_with(".model")) return "SentencePieceTokenizer";
  return "";
}

struct file_arguments {
  std::string type;
  std::optional<fs::path> merge_file;
  std::string tiktoken_pattern;
  std::vector<std::string> special_tokens;
  std::string eod_token;
  std::optional<fs::path> cache;
};

std::unique_ptr<tokenizer> from_file(const fs::path& path, const file_arguments& given) {
  millrace::tokenizer::tokenizer_options options;
  options.type = given.type.empty() ? type_of(path) : given.type;
  if (options.type.empty()) {
    throw config_error(path.string() +
                       ": its name does not tell the type of the tokenizer; pass type=, one of "
                       "Megatron's types, such as 'BertWordPieceLowerCase'");
  }
  options.tiktoken_pattern = given.tiktoken_pattern;
  options.special_tokens = given.special_tokens;
  options.eod_token = given.eod_token;
  options.cache = given.cache.value_or("");
  if (options.type == "GPT2BPETokenizer") {
    options.vocab_file = path;
    options.merge_file = given.merge_file.value_or(path.parent_path() / "merges.txt");
  } else if (options.type.starts_with("Bert")) {
    options.vocab_file = path;
  } else {
    options.model = path;
  }
  if (given.merge_file && options.type != "GPT2BPETokenizer") {
    throw config_error("merge_file is for type='GPT2BPETokenizer'; the type is '" + options.type +
                       "'");
  }
  return std::make_unique<tokenizer>(options);
}

/// What a pickled tokenizer holds: how to read the files again, and the fingerprint to expect.
nb::tuple pickled(const tokenizer& with) {
  const millrace::tokenizer::tokenizer_options& options = with.options();
  return nb::make_tuple(options.type, path_text(options.model), path_text(options.vocab_file),
                        path_text(options.merge_file), options.tiktoken_pattern,
                        options.special_tokens, options.eod_token, path_text(options.cache),
                        with->fingerprint());
}

using pickled_options = std::tuple<std::string, nb::str, nb::str, nb::str, std::string,
                                   std::vector<std::string>, std::string, nb::str, std::string>;

void unpickle(tokenizer& self, const pickled_options& state) {
  const auto& [type, model, vocab_file, merge_file, pattern, special_tokens, eod_token, cache,
               before] = state;
  millrace::tokenizer::tokenizer_options options;
  options.type = type;
  options.model = bytes_of_path(model);
  options.vocab_file = bytes_of_path(vocab_file);
  options.merge_file = bytes_of_path(merge_file);
  options.tiktoken_pattern = pattern;
  options.special_tokens = special_tokens;
  options.eod_token = eod_token;
  options.cache = bytes_of_path(cache);
  auto* const made = new (&self) tokenizer(options);
  if ((*made)->fingerprint() == before) return;
  made->~tokenizer();
  const fs::path& file = options.model.empty() ? options.vocab_file : options.model;
  throw config_error(file.string() +
                     " is not the tokenizer that was pickled: its files have changed since, or "
                     "differ on this machine. Expected the fingerprint " +
                     before);
}

}  // namespace

void bind_tokenizer(nb::module_& module) {
  using namespace nb::literals;
  module.def("_tokenizer_type", type_of, "path"_a,
             "The tokenizer type that a file's name says, or an empty string.",
             nb::sig("def _tokenizer_type(path: str | os.PathLike[str]) -> str"));
  nb::class_<tokenizer>(
      module, "Tokenizer",
      R"(A tokenizer, read from the files that its reference program reads; see `Tokenizer.from_file` and
`Tokenizer.from_folder`. Ids are those of the reference program.

Any number of threads may use it. The GIL is released while texts are encoded. It can be pickled:
unpickling reads the files again, and raises ConfigError if they have changed.)")
      .def_static(
          "from_file",
          [](const fs::path& path, const std::string& type,
             const std::optional<fs::path>& merge_file, const std::string& tiktoken_pattern,
             const std::vector<std::string>& special_tokens, const std::string& eod_token,
             const std::optional<fs::path>& cache) {
            return from_file(
                path, {type, merge_file, tiktoken_pattern, special_tokens, eod_token, cache});
          },
          "path"_a, nb::kw_only(), "type"_a = "", "merge_file"_a = nb::none(),
          "tiktoken_pattern"_a = "", "special_tokens"_a = std::vector<std::string>(),
          "eod_token"_a = "", "cache"_a = nb::none(), R"(Reads a tokenizer from a file.

The name of the file tells the type: `tokenizer.json` (Hugging Face), `vocab.json` (GPT-2, with
`merges.txt` beside it or in `merge_file`), `*.model` (SentencePiece), `*.vocab.json` or `*.tiktoken`
(tiktoken; the latter needs `tiktoken_pattern`, e.g. "cl100k"). `type` overrides it, with Megatron's name
of the type.

`cache` is a folder for files that make later loads of the same tokenizer fast; ids do not depend on it.)",
          nb::sig(
              "def from_file(path: str | os.PathLike[str], *, type: str = '', merge_file: str | "
              "os.PathLike[str] | None = None, tiktoken_pattern: str = '', special_tokens: "
              "collections.abc.Sequence[str] = (), eod_token: str = '', cache: str | "
              "os.PathLike[str] | None = None) -> Tokenizer"))
      .def_static("from_folder", from_folder, "folder"_a, nb::kw_only(), "eod_token"_a = "",
                  "cache"_a = nb::none(),
                  "Reads a tokenizer from a folder with a `tokenizer.json`, as `save_pretrained` "
                  "writes it. `cache` is as for `from_file`.",
                  nb::sig("def from_folder(folder: str | os.PathLike[str], *, eod_token: str = '', "
                          "cache: str | os.PathLike[str] | None = None) -> Tokenizer"))
      .def("encode", encode, "text"_a, "The ids of a text: int32 [tokens].",
           nb::sig("def encode(self, text: str) -> numpy.ndarray"))
      .def(
          "encode_with_offsets", encode_with_offsets, "text"_a,
          "The ids of a text, int32 [tokens], and for each the bytes of its UTF-8 that it was made "
          "from, int64 [tokens, 2]: the first, and the one after the last. The offsets are those "
          "of "
          "`tokenizers`, in bytes; (0, 0) is a token that is not in the text.",
          nb::sig("def encode_with_offsets(self, text: str) -> tuple[numpy.ndarray, "
                  "numpy.ndarray]"))
      .def(
          "encode_batch", encode_batch, "texts"_a, nb::kw_only(), "threads"_a = nb::none(),
          R"(The ids of many texts, without gaps: int32 [tokens], and int64 offsets [len(texts) + 1].

The ids of text i are `ids[offsets[i]:offsets[i + 1]]`. They do not depend on `threads`. None: as many
threads as this process has cores, but one for each 256 KiB of text at most.)",
          nb::sig("def encode_batch(self, texts: collections.abc.Iterable[str], *, threads: int | "
                  "None = None) -> tuple[numpy.ndarray, numpy.ndarray]"))
      .def(
          "decode",
          [](const tokenizer& with, nb::handle ids) {
            const std::string text = with->decode(ids_of(ids));
            return nb::steal<nb::object>(
                PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
          },
          "ids"_a,
          "The text of ids. Bytes that are not UTF-8, such as half a character, become U+FFFD.",
          nb::sig("def decode(self, ids: numpy.typing.ArrayLike) -> str"))
      .def(
          "decode_each",
          [](const tokenizer& with, nb::handle ids) {
            nb::list texts;
            for (const std::string& each : decode_each(*with, ids_of(ids))) {
              texts.append(nb::bytes(each.data(), each.size()));
            }
            return texts;
          },
          "ids"_a,
          R"(The part of the text that comes from each id, as bytes. Together they are the whole text.

What several ids make together belongs to the last of them, unless each id is one byte of a character.)",
          nb::sig("def decode_each(self, ids: numpy.typing.ArrayLike) -> list[bytes]"))
      .def_prop_ro(
          "vocab_size", [](const tokenizer& with) { return with->vocab_size(); },
          "Number of ids, including added tokens.")
      .def_prop_ro("eod", &tokenizer::eod,
                   "The end-of-document id. Raises ConfigError if the files name none.")
      .def_prop_ro(
          "fingerprint", [](const tokenizer& with) { return with->fingerprint(); },
          "SHA-256 of everything that determines the ids, as in a dataset's `.meta`.")
      .def("__repr__",
           [](const tokenizer& with) {
             return "<millrace.Tokenizer " + with.options().type + ", " +
                    std::to_string(with->vocab_size()) + " ids>";
           })
      .def("__getstate__", pickled, nb::sig("def __getstate__(self) -> tuple[typing.Any, ...]"))
      .def("__setstate__", unpickle);
}

}  // namespace millrace::python

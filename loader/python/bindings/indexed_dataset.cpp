// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/indexed_dataset.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/dtype.hpp>

#include "arrays.hpp"
#include "bindings.hpp"

namespace millrace::python {
namespace {

using data_pointer = std::shared_ptr<const dataset::indexed_dataset>;

/// The class IndexedDataset. Arrays share ownership of the mapped files.
class indexed_dataset {
 public:
  explicit indexed_dataset(const std::filesystem::path& prefix)
      : data_(std::make_shared<const dataset::indexed_dataset>(prefix)) {}

  const dataset::indexed_dataset& operator*() const noexcept { return *data_; }
  const dataset::indexed_dataset* operator->() const noexcept { return data_.get(); }

  /// Python's index, which counts from the end if it is negative.
  std::int64_t sequence_at(std::int64_t i) const {
    return at(i, data_->sequence_count(), "sequence");
  }
  std::int64_t document_at(std::int64_t d) const {
    return at(d, data_->document_count(), "document");
  }

  /// PREFIX.mask, opened at the first call; null if there is none.
  const dataset::token_mask* mask() const {
    std::call_once(mask_->opened, [&] { mask_->value = dataset::token_mask::find(*data_); });
    return mask_->value ? &*mask_->value : nullptr;
  }

  nb::object array_of(const dataset::token_view& tokens, bool copy) const {
    const array_memory memory = {.data = tokens.bytes().data(),
                                 .type = dlpack_type(tokens.type()),
                                 .shape = {static_cast<std::size_t>(tokens.size())},
                                 .dimensions = 1,
                                 .read_only = true};
    const nb::object view = make_array(array_output::numpy, memory, data_);
    return copy ? view.attr("copy")() : view;
  }

  /// An array of the `.idx`, which begins at an address of any alignment: numpy reads such arrays,
  /// DLPack does not describe them.
  template <class T>
  nb::object column(const formats::unaligned_span<T>& values, const char* type) const {
    const array_memory memory = {.data = values.bytes().data(),
                                 .type = nb::dtype<std::uint8_t>(),
                                 .shape = {values.bytes().size()},
                                 .dimensions = 1,
                                 .read_only = true};
    return make_array(array_output::numpy, memory, data_).attr("view")(type);
  }

 private:
  std::int64_t at(std::int64_t i, std::int64_t count, const char* what) const {
    if (-count <= i && i < count) return i < 0 ? i + count : i;
    throw nb::index_error((std::string(what) + " " + std::to_string(i) + " of a dataset with " +
                           std::to_string(count))
                              .c_str());
  }

  struct lazy_mask {
    std::once_flag opened;
    std::optional<dataset::token_mask> value;
  };

  data_pointer data_;
  std::unique_ptr<lazy_mask> mask_ = std::make_unique<lazy_mask>();
};

/// The sequences of a slice.
nb::list sequences_in(const indexed_dataset& data, const nb::slice& which) {
  const auto count = static_cast<std::size_t>(data->sequence_count());
  auto [start, stop, step, size] = which.compute(count);
  nb::list all;
  for (std::size_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::int64_t>(start) + static_cast<std::int64_t>(i) * step;
    all.append(data.array_of(data->sequence(at), false));
  }
  return all;
}

nb::object part_of(const indexed_dataset& data, std::int64_t i, std::int64_t offset,
                   std::optional<std::int64_t> length, bool copy) {
  const std::int64_t at = data.sequence_at(i);
  const std::int64_t size = data->sequence_length(at);
  if (offset < 0 || offset > size) {
    throw config_error("offset is " + std::to_string(offset) + ", expected 0 to " +
                       std::to_string(size) + ", the tokens of sequence " + std::to_string(at));
  }
  const std::int64_t tokens = length.value_or(size - offset);
  if (tokens < 0 || tokens > size - offset) {
    throw config_error("length is " + std::to_string(tokens) + ", expected 0 to " +
                       std::to_string(size - offset) + ", the tokens of sequence " +
                       std::to_string(at) + " from offset " + std::to_string(offset));
  }
  return data.array_of(data->sequence(at, offset, tokens), copy);
}

/// Which tokens of a document are to be predicted: an array of bool, or None without PREFIX.mask.
nb::object mask_of(const indexed_dataset& data, std::int64_t d) {
  const std::int64_t document = data.document_at(d);
  const dataset::token_mask* const mask = data.mask();
  if (mask == nullptr) return nb::none();
  const auto count = static_cast<std::uint64_t>(data->document_tokens(document).size());
  formats::bit_buffer bits;
  if (count != 0) {
    const auto sequence = static_cast<std::size_t>(data->document(document).first);
    const std::uint64_t first = static_cast<std::uint64_t>(data->index().pointers[sequence]) /
                                formats::size_bytes(data->type());
    bits.append(mask->bits(), first, first + count);
  }
  const auto bytes = bits.bits().bytes();
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object packed =
      numpy.attr("frombuffer")(nb::bytes(bytes.data(), bytes.size()), numpy.attr("uint8"));
  using namespace nb::literals;
  return numpy.attr("unpackbits")(packed, "count"_a = count, "bitorder"_a = "little")
      .attr("view")(numpy.attr("bool_"));
}

nb::object text_of(const indexed_dataset& data) {
  const std::string counts = "': " + std::to_string(data->sequence_count()) + " sequences, " +
                             std::to_string(data->document_count()) + " documents, " +
                             std::to_string(data->token_count()) + " tokens of " +
                             std::string(formats::name(data->type())) + ">";
  return nb::str("<millrace.IndexedDataset '") + path_text(data->prefix()) +
         nb::str(counts.c_str());
}

}  // namespace

void bind_indexed_dataset(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<indexed_dataset>(module, "IndexedDataset",
                              R"(A dataset of Megatron: PREFIX.bin and PREFIX.idx, mapped read-only.

`len(data)` is the number of sequences, and `data[i]` is sequence i: a read-only numpy array of shape
[tokens] in the dtype of the dataset, without a copy. `data[i:j]` is a list of such arrays. The arrays
keep the files mapped, also after the dataset is deleted.

A file that is truncated while it is mapped ends the process with SIGBUS at the next access to the lost
part. Programs that replace datasets must write a new file and rename it.)")
      .def(nb::init<const std::filesystem::path&>(), "prefix"_a,
           "Opens a dataset.\n\n`prefix` is the path without `.bin` and `.idx`.",
           nb::sig("def __init__(self, prefix: str | os.PathLike[str]) -> None"))
      .def("__len__", [](const indexed_dataset& data) { return data->sequence_count(); })
      .def(
          "__getitem__",
          [](const indexed_dataset& data, std::int64_t i) {
            return data.array_of(data->sequence(data.sequence_at(i)), false);
          },
          "i"_a, nb::sig("def __getitem__(self, i: int, /) -> numpy.ndarray"))
      .def("__getitem__", sequences_in, "which"_a,
           nb::sig("def __getitem__(self, which: slice, /) -> list[numpy.ndarray]"))
      .def("get", part_of, "i"_a, "offset"_a = 0, "length"_a = nb::none(), "copy"_a = false,
           "Tokens [offset, offset + length) of sequence i; without `length`, all from `offset` "
           "on.\n\n"
           "A read-only view, or with `copy=True` a new array.",
           nb::sig("def get(self, i: int, offset: int = 0, length: int | None = None, "
                   "copy: bool = False) -> numpy.ndarray"))
      .def(
          "document",
          [](const indexed_dataset& data, std::int64_t d, bool copy) {
            return data.array_of(data->document_tokens(data.document_at(d)), copy);
          },
          "d"_a, "copy"_a = false, "All tokens of document d.",
          nb::sig("def document(self, d: int, copy: bool = False) -> numpy.ndarray"))
      .def("document_mask", mask_of, "d"_a,
           "Which tokens of document d a model learns to predict: an array of bool, or None if "
           "there "
           "is no PREFIX.mask, so that all of them are.",
           nb::sig("def document_mask(self, d: int) -> numpy.ndarray | None"))
      .def_prop_ro(
          "document_count", [](const indexed_dataset& data) { return data->document_count(); },
          "Number of documents.")
      .def_prop_ro(
          "token_count", [](const indexed_dataset& data) { return data->token_count(); },
          "Number of tokens in the `.bin`.")
      .def_prop_ro(
          "document_indices",
          [](const indexed_dataset& data) {
            return data.column(data->index().document_index, "<i8");
          },
          "int64 [document_count + 1]: the first sequence of each document, then len(self).",
          nb::sig("def document_indices(self) -> numpy.ndarray"))
      .def_prop_ro(
          "sequence_lengths",
          [](const indexed_dataset& data) { return data.column(data->index().lengths, "<i4"); },
          "int32 [len(self)]: the number of tokens of each sequence.",
          nb::sig("def sequence_lengths(self) -> numpy.ndarray"))
      .def_prop_ro(
          "dtype",
          [](const indexed_dataset& data) {
            return nb::module_::import_("numpy").attr("dtype")(
                std::string(formats::name(data->type())));
          },
          "The numpy dtype of the tokens.", nb::sig("def dtype(self) -> numpy.dtype"))
      .def_prop_ro(
          "prefix", [](const indexed_dataset& data) { return path_text(data->prefix()); },
          "The path without `.bin` and `.idx`.")
      .def("__repr__", text_of, nb::sig("def __repr__(self) -> str"))
      .def("__getstate__", [](const indexed_dataset& data) { return path_text(data->prefix()); })
      .def("__setstate__", [](indexed_dataset& data, const nb::str& prefix) {
        new (&data) indexed_dataset(std::filesystem::path(bytes_of_path(prefix)));
      });
}

}  // namespace millrace::python

// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/verify_sources.hpp>

#include <cstdint>
#include <span>
#include <string>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// Compares the places of the documents with the parts of the inputs that were read. Call the
/// object once per document, in document order.
class place_check {
 public:
  place_check(const document_sources& sources, std::span<const source_extent> inputs,
              source_order order)
      : sources_(sources), inputs_(inputs), order_(order) {}

  void operator()(std::int64_t document, const formats::source_place& place) {
    const source_extent& input = inputs_[place.input];
    if (place.begin < input.begin || place.end > input.end) {
      fail(document, "at " + range_of(place) + ", but the .meta says that " + unit_of(place.input) +
                         ' ' + std::to_string(input.begin) + " to " + std::to_string(input.end) +
                         " were read");
    }
    if (place.line > input.line_count) {
      fail(document, "at line " + std::to_string(place.line) + ", but the .meta says that " +
                         std::to_string(input.line_count) + " lines were read");
    }
    if (order_ == source_order::any) return;
    if (document != 0 && place.input < last_.input) {
      fail(document, "in input " + std::to_string(place.input) + ", after a document in input " +
                         std::to_string(last_.input) + ", but inputs were read in order");
    }
    if (document != 0 && place.input == last_.input &&
        (place.line <= last_.line || place.begin < last_.end)) {
      fail(document, "at line " + std::to_string(place.line) + ", " + range_of(place) +
                         ", but the document before it is at line " + std::to_string(last_.line) +
                         ", " + range_of(last_) + ", and lines were read in order");
    }
    last_ = place;
  }

 private:
  const char* unit_of(std::uint32_t input) const {
    return sources_.input_unit(input) == formats::src_unit::rows ? "rows" : "bytes";
  }
  std::string range_of(const formats::source_place& place) const {
    return std::string(unit_of(place.input)) + ' ' + std::to_string(place.begin) + " to " +
           std::to_string(place.end);
  }
  [[noreturn]] void fail(std::int64_t document, const std::string& what) const {
    throw format_error(sources_.offset_of(document),
                       "document " + std::to_string(document) + " is listed " + what);
  }

  const document_sources& sources_;
  std::span<const source_extent> inputs_;
  source_order order_;
  formats::source_place last_;
};

}  // namespace detail

MILLRACE_INLINE void verify_sources(const document_sources& sources) {
  sources.for_each([](std::int64_t, const formats::source_place&) {});
}

MILLRACE_INLINE void verify_sources(const document_sources& sources,
                                    std::span<const source_extent> inputs, source_order order) {
  if (sources.input_count() != inputs.size()) {
    throw format_error(sources.path(), 32,
                       "it has the names of " + std::to_string(sources.input_count()) +
                           " inputs, but the .meta has " + std::to_string(inputs.size()));
  }
  detail::place_check check(sources, inputs, order);
  sources.for_each(check);
}

}  // namespace millrace::dataset

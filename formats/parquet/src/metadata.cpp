// SPDX-License-Identifier: Apache-2.0
#include "metadata.hpp"

#include <array>
#include <cstddef>

namespace millrace::parquet::detail {
namespace {

using type = thrift_reader::type;

/// Counts the required fields of a struct as they are read.
class required_fields {
 public:
  void seen(unsigned bit) { seen_ |= 1U << bit; }
  void check(const thrift_reader& in, unsigned wanted, const char* what) const {
    if ((seen_ & wanted) != wanted) {
      in.fail(std::string("its metadata has ") + what +
              " without a field that the format requires");
    }
  }

 private:
  unsigned seen_ = 0;
};

bool is_bool(type kind) {
  return kind == type::yes || kind == type::no;
}

void parse_integer_type(thrift_reader& in, schema_element& to) {
  in.fields([&](std::int32_t field, type kind) {
    if (field != 2 || !is_bool(kind)) return false;
    to.integer_is_signed = kind == type::yes;
    return true;
  });
}

constexpr std::int32_t logical_integer = 10;

void parse_logical_type(thrift_reader& in, schema_element& to) {
  in.fields([&](std::int32_t field, type kind) {
    to.logical = field;  // a union has one field
    if (field != logical_integer || kind != type::structure) return false;
    parse_integer_type(in, to);
    return true;
  });
}

schema_element parse_schema_element(thrift_reader& in) {
  schema_element to;
  required_fields required;
  in.fields([&](std::int32_t field, type kind) {
    if (field == 4 && kind == type::binary) {
      to.name = in.text();
      required.seen(0);
      return true;
    }
    if (field == 10 && kind == type::structure) {
      parse_logical_type(in, to);
      return true;
    }
    if (kind != type::int32) return false;
    switch (field) {
      case 1:
        to.type = static_cast<physical>(in.int32());
        return true;
      case 3:
        to.repeats = static_cast<repetition>(in.int32());
        return true;
      case 5:
        to.children = in.int32();
        return true;
      case 6:
        to.converted = in.int32();
        return true;
      default:
        return false;
    }
  });
  required.check(in, 1, "an element of the schema");
  return to;
}

void parse_column_metadata(thrift_reader& in, column_chunk& to) {
  required_fields required;
  in.fields([&](std::int32_t field, type kind) {
    if (kind == type::int32 && (field == 1 || field == 4)) {
      const std::int32_t value = in.int32();
      if (field == 1) {
        to.type = static_cast<physical>(value);
      } else {
        to.compression = static_cast<codec>(value);
      }
      required.seen(static_cast<unsigned>(field));
      return true;
    }
    if (kind != type::int64) return false;
    std::int64_t* number = nullptr;
    switch (field) {
      case 5:
        number = &to.values;
        break;
      case 6:
        number = &to.uncompressed_bytes;
        break;
      case 7:
        number = &to.stored_bytes;
        break;
      case 9:
        number = &to.data_page_offset;
        break;
      case 11:
        number = &to.dictionary_page_offset;
        break;
      default:
        return false;
    }
    *number = in.int64();
    required.seen(static_cast<unsigned>(field));
    return true;
  });
  required.check(in, 1U << 1 | 1U << 4 | 1U << 5 | 1U << 6 | 1U << 7 | 1U << 9, "a column");
  to.has_metadata = true;
}

column_chunk parse_column_chunk(thrift_reader& in) {
  column_chunk to;
  required_fields required;
  in.fields([&](std::int32_t field, type kind) {
    switch (field) {
      case 1:
        to.is_elsewhere = true;
        return false;
      case 2:
        required.seen(0);
        return false;
      case 3:
        if (kind != type::structure) return false;
        parse_column_metadata(in, to);
        return true;
      case 8:
      case 9:
        to.is_encrypted = true;
        return false;
      default:
        return false;
    }
  });
  required.check(in, 1, "a column");
  return to;
}

row_group_metadata parse_row_group(thrift_reader& in) {
  row_group_metadata to;
  required_fields required;
  in.fields([&](std::int32_t field, type kind) {
    if (field == 1 && kind == type::list) {
      in.list(type::structure, [&] { to.columns.push_back(parse_column_chunk(in)); });
      required.seen(0);
    } else if (field == 3 && kind == type::int64) {
      to.rows = in.int64();
      required.seen(1);
    } else {
      return false;
    }
    return true;
  });
  required.check(in, 3, "a row group");
  if (to.rows < 0) in.fail("its metadata has a row group of fewer than 0 rows");
  to.columns.shrink_to_fit();
  return to;
}

/// The fields of a struct that have the type int32 and the numbers 1 to 6.
struct small_fields {
  std::array<std::int32_t, 7> values{};  // by number
  required_fields required;

  /// Reads such a field. @return false if it is another one
  bool take(thrift_reader& in, std::int32_t field, type kind) {
    if (kind != type::int32 || field < 1 || field > 6) return false;
    values[static_cast<std::size_t>(field)] = in.int32();
    required.seen(static_cast<unsigned>(field));
    return true;
  }
};

void parse_data_page(thrift_reader& in, page_header& to) {
  small_fields found;
  in.fields([&](std::int32_t field, type kind) { return found.take(in, field, kind); });
  found.required.check(in, 0x1E, "a page");
  to.values = found.values[1];
  to.values_encoding = static_cast<encoding>(found.values[2]);
  to.definition_encoding = static_cast<encoding>(found.values[3]);
  to.repetition_encoding = static_cast<encoding>(found.values[4]);
}

void parse_dictionary_page(thrift_reader& in, page_header& to) {
  small_fields found;
  in.fields([&](std::int32_t field, type kind) { return found.take(in, field, kind); });
  found.required.check(in, 6, "a page");
  to.values = found.values[1];
  to.values_encoding = static_cast<encoding>(found.values[2]);
}

void parse_data_page_v2(thrift_reader& in, page_header& to) {
  small_fields found;
  in.fields([&](std::int32_t field, type kind) {
    if (field != 7 || !is_bool(kind)) return found.take(in, field, kind);
    to.is_compressed = kind == type::yes;
    return true;
  });
  found.required.check(in, 0x7E, "a page");
  to.values = found.values[1];  // 2 and 3 are the numbers of nulls and of rows
  to.values_encoding = static_cast<encoding>(found.values[4]);
  to.definition_bytes = found.values[5];
  to.repetition_bytes = found.values[6];
}

template <std::size_t Size>
std::string name_or_number(const std::array<const char*, Size>& names, std::int32_t value) {
  const auto index = static_cast<std::size_t>(value);  // below 0: too large
  if (index < Size && *names[index] != '\0') return names[index];
  return "number " + std::to_string(value);
}

}  // namespace

file_metadata parse_file_metadata(std::span<const char> bytes, std::uint64_t offset) {
  thrift_reader in(bytes, offset);
  file_metadata to;
  required_fields required;
  in.fields([&](std::int32_t field, type kind) {
    if (field == 2 && kind == type::list) {
      in.list(type::structure, [&] { to.schema.push_back(parse_schema_element(in)); });
      required.seen(0);
    } else if (field == 3 && kind == type::int64) {
      to.rows = in.int64();
      required.seen(1);
    } else if (field == 4 && kind == type::list) {
      in.list(type::structure, [&] { to.row_groups.push_back(parse_row_group(in)); });
      required.seen(2);
    } else {
      return false;
    }
    return true;
  });
  required.check(in, 7, "a footer");
  return to;
}

page_header parse_page_header(thrift_reader& in) {
  page_header to;
  required_fields required;
  bool has_own_header = false;
  in.fields([&](std::int32_t field, type kind) {
    if (kind == type::int32 && field >= 1 && field <= 4) {
      const std::int32_t value = in.int32();
      required.seen(static_cast<unsigned>(field));
      switch (field) {
        case 1:
          to.type = static_cast<page_type>(value);
          break;
        case 2:
          to.uncompressed_bytes = value;
          break;
        case 3:
          to.stored_bytes = value;
          break;
        default:
          to.crc = value;
          break;
      }
      return true;
    }
    if (kind != type::structure) return false;
    if (field == 5 && to.type == page_type::data) {
      parse_data_page(in, to);
    } else if (field == 7 && to.type == page_type::dictionary) {
      parse_dictionary_page(in, to);
    } else if (field == 8 && to.type == page_type::data_v2) {
      parse_data_page_v2(in, to);
    } else {
      return false;
    }
    has_own_header = true;
    return true;
  });
  required.check(in, 0xE, "a page");
  if (!has_own_header && (to.is_data() || to.type == page_type::dictionary)) {
    in.fail("a page has no header of its type");
  }
  return to;
}

std::string name_of(codec compression) {
  constexpr std::array names = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
  return name_or_number(names, static_cast<std::int32_t>(compression));
}

std::string name_of(encoding how) {
  constexpr std::array names = {"PLAIN",
                                "",
                                "PLAIN_DICTIONARY",
                                "RLE",
                                "BIT_PACKED",
                                "DELTA_BINARY_PACKED",
                                "DELTA_LENGTH_BYTE_ARRAY",
                                "DELTA_BYTE_ARRAY",
                                "RLE_DICTIONARY",
                                "BYTE_STREAM_SPLIT"};
  return name_or_number(names, static_cast<std::int32_t>(how));
}

}  // namespace millrace::parquet::detail

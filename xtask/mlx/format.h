// Force-included before every source of mlx-c: gives std::format to standard libraries that lack <format> (gcc 12).
//
// mlx-c uses it for error messages only, and with plain {} placeholders only; that is all this does.

#pragma once

#if __has_include(<format>)
#include <format>
#else

#include <sstream>
#include <string>
#include <string_view>

namespace std {

inline void mlxcel_format_next(ostringstream& out, string_view& rest) {
  out << rest;
  rest = {};
}

template <typename First, typename... Others>
void mlxcel_format_next(ostringstream& out, string_view& rest, const First& first, const Others&... others) {
  const auto place = rest.find("{}");
  if (place == string_view::npos) {
    return mlxcel_format_next(out, rest);
  }
  out << rest.substr(0, place) << first;
  rest.remove_prefix(place + 2);
  mlxcel_format_next(out, rest, others...);
}

template <typename... Values>
string format(string_view text, const Values&... values) {
  ostringstream out;
  mlxcel_format_next(out, text, values...);
  return out.str();
}

} // namespace std

#endif

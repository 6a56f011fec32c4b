// SPDX-License-Identifier: Apache-2.0
// Compiles the fmt library's own code once, from its headers. Debian ships it only as a shared
// library whose name differs by release (libfmt.so.9, .10), and vf-guest also runs on other
// distributions. Header-only use would cost a second of compile time per file.
#include <fmt/format-inl.h>

#include <locale>

// Instantiates the templates that fmt's headers declare and its library defines, in src/format.cc.
FMT_BEGIN_NAMESPACE
namespace detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template locale_ref::locale_ref(std::locale const&);
template std::locale locale_ref::get<std::locale>() const;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template void buffer<char>::append(char const*, char const*);
template void vformat_to(buffer<char>&, string_view, format_args, locale_ref);

}  // namespace detail
FMT_END_NAMESPACE

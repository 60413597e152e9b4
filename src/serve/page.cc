#include "serve/page.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/embed.h"

#ifdef MSPROBE_PAGE_FILE
MSPROBE_EMBED(page, MSPROBE_PAGE_FILE);  // web/dist/index.html
#endif

namespace msprobe::serve {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Position of `word` (in lower case) in either case, npos when absent.
size_t FindNoCase(std::string_view text, std::string_view word, size_t from) {
  const auto it = std::search(text.begin() + static_cast<std::ptrdiff_t>(std::min(from, text.size())), text.end(),
                              word.begin(), word.end(), [](char a, char b) { return Lower(a) == b; });
  return it == text.end() ? std::string_view::npos : static_cast<size_t>(it - text.begin());
}

}  // namespace

std::string_view PageHtml() {
#ifdef MSPROBE_PAGE_FILE
  return MSPROBE_EMBEDDED(page);
#else
  return "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>msprobe</title>"
         "<p>This msprobe was built without its page. Run <code>tools/setup.sh</code>, or build with Node.js installed "
         "and "
         "<code>-DMSPROBE_WEB=ON</code>. The queries under <code>/api/</code> work.</p></html>\n";
#endif
}

std::string_view NoTokenHtml() {
  return "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>msprobe</title>"
         "<style>:root{color-scheme:light dark;font:15px/1.6 system-ui,sans-serif}"
         "body{max-width:36em;margin:18vh auto;padding:0 24px}h1{font-size:20px}</style>"
         "<h1>This address is not complete, or not valid any more</h1>"
         "<p>Open the address that <code>msprobe serve</code> printed last, with its token.</p>"
         "<p lang=\"zh\">此地址不完整或已失效。请打开 <code>msprobe serve</code> 最近一次打印的地址（含 "
         "token）。</p></html>\n";
}

std::string WithScriptNonce(std::string_view html, std::string_view nonce) {
  std::string out;
  out.reserve(html.size() + 64);
  size_t at = 0;
  for (;;) {
    const size_t tag = FindNoCase(html, "<script", at);
    if (tag == std::string_view::npos) break;
    const size_t after = tag + 7;
    out.append(html, at, after - at);
    const bool is_element = after < html.size() && (html[after] == '>' || html[after] == ' ' || html[after] == '\n');
    if (is_element) out.append(" nonce=\"").append(nonce).append("\"");
    const size_t end = is_element ? std::min(FindNoCase(html, "</script", after), html.size()) : after;
    out.append(html, after, end - after);
    at = end;
  }
  return out.append(html, at, html.size() - at);
}

std::string ContentSecurityPolicy(std::string_view nonce) {
  // Style attributes cannot carry a nonce; a style can neither run code nor reach another host here.
  return fmt::format(
      "default-src 'none'; script-src 'nonce-{}'; style-src 'unsafe-inline'; img-src 'self' data: blob:; font-src "
      "data:; "
      "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      nonce);
}

std::string WithGuestToken(std::string_view html, std::string_view token) {
  constexpr std::string_view kCharset = "<meta charset=\"utf-8\"";
  const size_t tag = html.find(kCharset);
  const size_t end = tag == std::string_view::npos ? tag : html.find('>', tag);
  if (end == std::string_view::npos) return std::string(html);
  std::string out(html.substr(0, end + 1));
  out.append("<meta name=\"msprobe-host\" content=\"tensorboard\"><meta name=\"msprobe-token\" content=\"");
  return out.append(token).append("\">").append(html.substr(end + 1));
}

std::string GuestPolicy(std::string_view html) {
  constexpr std::string_view kRule = "script-src ";
  const size_t at = html.find(kRule);
  const size_t end = at == std::string_view::npos ? at : html.find_first_of(";\"", at);
  const std::string_view scripts =
      end == std::string_view::npos ? "'none'" : html.substr(at + kRule.size(), end - at - kRule.size());
  return fmt::format(
      "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
      scripts);
}

}  // namespace msprobe::serve

// The page, one HTML file built from web/ and linked into the program.
#pragma once

#include <string>
#include <string_view>

namespace msprobe::serve {

/// The embedded HTML; without one (MSPROBE_WEB=OFF) a short page that says how to get it.
std::string_view PageHtml();
/// What a browser shows for an address without the right token, in both languages: the page itself needs the token.
std::string_view NoTokenHtml();
/// `html` with `nonce="..."` in each of its script elements. Text inside a script is left alone.
std::string WithScriptNonce(std::string_view html, std::string_view nonce);
/// Lets scripts with this nonce run, talk to this server, and nothing else.
std::string ContentSecurityPolicy(std::string_view nonce);
/// `html` with the token in a <meta> of its head, for a page inside another program's server.
std::string WithGuestToken(std::string_view html, std::string_view token);
/// What `html` allows itself in its own <meta> by hashes, as a header; TensorBoard warns of nonces. Frames of the same
/// server may hold it.
std::string GuestPolicy(std::string_view html);

}  // namespace msprobe::serve

// SPDX-License-Identifier: Apache-2.0
#include "proto/hello.h"

#include <charconv>

namespace hvd {
namespace {

template <class Number>
bool ParseNumber(std::string_view text, Number* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// Cuts `text` at the first `separator`; the rest stays in `text`.
std::string_view Cut(std::string_view* text, char separator) {
  const size_t at = text->find(separator);
  const std::string_view head = text->substr(0, at);
  text->remove_prefix(at == std::string_view::npos ? text->size() : at + 1);
  return head;
}

}  // namespace

std::string FormatHello(std::string_view marker, const Hello& hello) {
  return std::string(marker) + " " + std::to_string(hello.protocol) + " " + hello.version +
         (hello.host.empty() ? "" : " " + hello.host) + "\n";
}

bool ParseHello(std::string_view rest_of_line, Hello* hello) {
  if (rest_of_line.empty() || rest_of_line.front() != ' ') return false;
  rest_of_line.remove_prefix(1);
  if (!ParseNumber(Cut(&rest_of_line, ' '), &hello->protocol)) return false;
  hello->version = std::string(Cut(&rest_of_line, ' '));
  hello->host = std::string(rest_of_line);
  return !hello->version.empty();
}

std::string FormatLinkName(const LinkName& link) {
  return std::to_string(link.fd) + ":" + std::to_string(link.inode) + ":" + link.token + ":" +
         link.path;
}

bool ParseLinkName(std::string_view text, LinkName* link) {
  if (!ParseNumber(Cut(&text, ':'), &link->fd)) return false;
  if (!ParseNumber(Cut(&text, ':'), &link->inode)) return false;
  link->token = std::string(Cut(&text, ':'));
  link->path = std::string(text);
  return link->token.size() == 32;
}

}  // namespace hvd

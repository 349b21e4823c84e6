"""The course as web pages that ask no host for anything."""

"""Results of an evaluation: the frames over a folder of rows, and what is made of them."""

from jurimetrics.results.view import Results as Results

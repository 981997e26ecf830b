"""The paper's tables and figures as data: which cells they have, how each is measured, which runs that takes."""
